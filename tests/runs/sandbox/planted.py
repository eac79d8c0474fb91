"""What an attacker puts where the worker expects a plain file."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

SECRET = "the-worker-alone-knows-this"


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        folder = os.open(path.parent, os.O_RDONLY)
        # Its own name may be longer than an address of a socket.
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)


def victim(folder: Path) -> Path:
    """Return a file that no trial may read or change."""
    path = folder / "victim.txt"
    path.write_text(SECRET)
    return path


def plants(secret: Path) -> Mapping[str, Callable[[Path], object]]:
    """Return by name what puts something at a path; the links lead to a secret."""
    return {
        "fifo": os.mkfifo,
        "link": lambda path: path.symlink_to(secret),
        "link up": lambda path: path.symlink_to(os.path.relpath(secret, path.parent)),
        "loop": _loop,
        "environment": lambda path: path.symlink_to("/proc/self/environ"),
        "device": lambda path: path.symlink_to("/dev/zero"),
        "folder": lambda path: path.mkdir(),
        "sparse": _sparse,
        "socket": _socket,
    }


NAMES = tuple(plants(Path()))

SHELL = {
    "fifo": "mkfifo {path}",
    "link": "ln -s {secret} {path}",
    "loop": "ln -s {name} {path}",
    "environment": "ln -s /proc/self/environ {path}",
    "folder": "mkdir -p {path}/full/of/folders",
    "sparse": "truncate -s 1T {path}",
    "hard link": "echo x > {path}-2; ln {path}-2 {path}",
}
"""The same by commands of an agent."""


def planting(how: str, path: str, secret: Path) -> str:
    """Return the command that plants something at a path, in place of what is there."""
    command = SHELL[how].format(path=path, name=path.rpartition("/")[2], secret=secret)
    return f"mkdir -p $(dirname {path}); rm -rf {path}; {command} || true"
