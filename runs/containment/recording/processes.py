"""Read what a process is, from outside its sandbox. Standard library only, because the recorder imports it."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from typing import Any

INTERPRETERS = re.compile(
    r"(?:python|pypy|node|bun|deno|ruby|perl|php|lua|(?:ba|da|z|k|fi|a)?sh|ld-linux|ld-musl)[\w.-]*$"
)
_SHELLS = re.compile(r"(?:ba|da|z|k|fi|a)?sh$")
_INLINE = {"-c", "-e", "-m", "--eval", "-p", "--print", "-E"}
_WITH_VALUE = {"-o", "-O", "-W", "-X", "-r", "--require", "--import", "--loader", "-I"}
_AT_EXECFN = 31
_OPENAT2, _RESOLVE_IN_ROOT = 437, 0x10
LONGEST_ARGUMENTS = 65_536
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


def link(pid: int, name: str) -> str:
    """Return where a link of a process leads, as the process sees it; empty if it can't be read."""
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def status(pid: int, name: str) -> int:
    """Return the first number of a field of a process's status. Raises `OSError`."""
    found = re.search(rb"^%s:\t(\d+)" % name.encode(), read(pid, "status"), re.MULTILINE)
    if found is None:
        raise OSError(f"The process has no {name}")
    return int(found[1])


def arguments(pid: int, most: int = LONGEST_ARGUMENTS) -> list[str]:
    """Return a process's arguments, cut to so many bytes. Raises `OSError`."""
    return os.fsdecode(read(pid, "cmdline", most)).rstrip("\0").split("\0")


def image_of(pid: int) -> tuple[str, bytes]:
    """Return what changes when a process executes a program: the program's path and the arguments."""
    try:
        return link(pid, "exe"), read(pid, "cmdline", SHOWN_ARGUMENTS)
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
        return link(pid, "fd/" + path.split("/")[3])
    return path


def open_inside(pid: int, path: str) -> int:
    """Return a descriptor of a file as the process sees it; links never lead out of its root. Raises `OSError`."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    try:
        how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT)
        found = libc.syscall(_OPENAT2, root, os.fsencode(path), how, len(how))
    finally:
        os.close(root)
    if found < 0:
        raise OSError(ctypes.get_errno(), path)
    return int(found)


def first_operand(program: str, argv: list[str]) -> int:
    """Return where the script of an interpreter is among its arguments; 0 for inline code and other programs."""
    if not INTERPRETERS.match(program.rsplit("/", 1)[-1]):
        return 0
    is_shell = _SHELLS.match(program.rsplit("/", 1)[-1]) is not None
    at = 1
    while at < len(argv) and argv[at].startswith(("-", "+")) and len(argv[at]) > 1:
        word = argv[at]
        if word in _INLINE or (is_shell and not word.startswith("--") and "c" in word):
            return 0
        at += 2 if word in _WITH_VALUE else 1
    return at if at < len(argv) and argv[at] != "-" else 0


def describe(pid: int, writable: tuple[str, ...], known: frozenset[str]) -> dict[str, Any]:
    """Return a process as JSON: its program and arguments, and the script that it runs. Raises `OSError`.

    `writable` are folders where the sandbox can write, `known` the files that were in them at the start.
    """
    argv, exe = arguments(pid, SHOWN_ARGUMENTS), link(pid, "exe")
    found: dict[str, Any] = {"pid": pid, "argv": argv[:64], "exe": exe}
    if at := first_operand(exe, argv):
        path = os.path.normpath(os.path.join(link(pid, "cwd") or "/", argv[at]))
        found["script"] = path
        inside = any(path == folder or path.startswith(f"{folder}/") for folder in writable)
        found["written"] = inside and path not in known
    return found
