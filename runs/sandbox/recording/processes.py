"""Read what a process is, from outside its sandbox. Standard library only, because the recorder imports it."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from typing import Any

from runs.sandbox.recording.scripts import module_of, module_paths, script_of

_AT_EXECFN = 31
_OPENAT2, _RESOLVE_IN_ROOT = 437, 0x10
LONGEST_ARGUMENTS = 16_384
LONGEST_ENVIRONMENT = 1 << 18
SHOWN_ARGUMENTS = 4_000
"""Bytes of the arguments of processes that lead to a call."""
MOST_PARENTS = 8
"""Of the ancestors, so many of the nearest and of the topmost."""

libc = ctypes.CDLL(None, use_errno=True)


def read(pid: int, name: str, size: int = LONGEST_ARGUMENTS, at: int | None = None) -> bytes:
    """Return the beginning of a file of a process, or what is at an address of its memory. Raises `OSError`."""
    descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size) if at is None else os.pread(descriptor, size, at)
    finally:
        os.close(descriptor)


def read_link(pid: int, name: str) -> str:
    """Return where a link of a process leads, as the process sees it; empty if it can't be read."""
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def status(pid: int, name: str) -> int:
    """Return the first number of a field of a process's status. Raises `OSError`."""
    match = re.search(rb"^%s:\t(\d+)" % name.encode(), read(pid, "status"), re.MULTILINE)
    if match is None:
        raise OSError(f"The process has no {name}")
    return int(match[1])


def read_arguments(pid: int, most: int = LONGEST_ARGUMENTS) -> list[str]:
    """Return a process's arguments, cut to so many bytes. Raises `OSError`."""
    return os.fsdecode(read(pid, "cmdline", most)).rstrip("\0").split("\0")


def image_of(pid: int) -> tuple[str, bytes]:
    """Return what changes when a process executes a program: the program's path and the arguments."""
    try:
        return read_link(pid, "exe"), read(pid, "cmdline", SHOWN_ARGUMENTS)
    except OSError:
        return "", b""


def executed_path(pid: int) -> str:
    """Return the path that a process gave to `execve`, from its new image. Raises `OSError` or `KeyError`."""
    vector = read(pid, "auxv", 1024)
    at = dict(struct.iter_unpack("QQ", vector[: len(vector) // 16 * 16])).get(_AT_EXECFN)
    if at is None:  # a 32-bit program
        at = dict(struct.iter_unpack("II", vector[: len(vector) // 8 * 8]))[_AT_EXECFN]
    path = os.fsdecode(read(pid, "mem", 4096 - at % 4096, at).split(b"\0", 1)[0])
    if path.startswith("/dev/fd/"):  # fexecve
        return read_link(pid, "fd/" + path.split("/")[3])
    return path


def open_inside(pid: int, path: str) -> int:
    """Return a descriptor of a file as the process sees it; links never lead out of its root. Raises `OSError`."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    try:
        how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT)
        descriptor = libc.syscall(_OPENAT2, root, os.fsencode(path), how, len(how))
    finally:
        os.close(root)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), path)
    return int(descriptor)


def escape_bytes(value: Any) -> Any:
    """Return what was read of processes as JSON may have it: bytes that aren't UTF-8 as `\\xNN`.

    Paths and arguments are bytes to Linux, and a cut may fall inside a character.
    """
    if isinstance(value, str):
        return value if value.isascii() else os.fsencode(value).decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {name: escape_bytes(each) for name, each in value.items()}
    return [escape_bytes(each) for each in value] if isinstance(value, list | tuple) else value


def describe_process(pid: int, writable: tuple[str, ...], known: frozenset[str]) -> dict[str, Any]:
    """Return a process as JSON: its program and arguments, and the script that it runs. Raises `OSError`.

    `writable` are folders where the sandbox can write, `known` the files that were in them at the start.
    """
    argv, exe = read_arguments(pid, SHOWN_ARGUMENTS), read_link(pid, "exe")
    described: dict[str, Any] = {"pid": pid, "argv": argv[:64], "exe": exe}
    at, is_module = script_of(argv, exe)
    if at:
        path = _script_path(pid, argv[at], is_module=is_module)
        described["script"] = path
        inside = any(path == folder or path.startswith(f"{folder}/") for folder in writable)
        described["written"] = inside and path not in known
    if marks := _marks(pid):
        described["marks"] = marks
    return described


def _script_path(pid: int, word: str, *, is_module: bool) -> str:
    """Return the path of a script; of a module, that of its file in the working folder, else its name."""
    cwd = read_link(pid, "cwd") or "/"
    if not is_module:
        return os.path.normpath(os.path.join(cwd, word))
    module = module_of(word)
    return next((path for path in module_paths(module, cwd) if _exists(pid, path)), module)


def _exists(pid: int, path: str) -> bool:
    try:
        os.close(open_inside(pid, path))
    except OSError:
        return False
    return True


def _marks(pid: int) -> dict[str, str]:
    """Return the variables by which agent programs mark the model's commands; no others, which may be secrets."""
    try:
        content = read(pid, "environ", LONGEST_ENVIRONMENT)
    except OSError:
        return {}
    pairs = (each.partition("=") for each in os.fsdecode(content).split("\0"))
    return {
        name: value[:200]
        for name, _, value in pairs
        if name in ("AI_AGENT", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID")
    }
