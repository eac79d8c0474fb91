"""Limit this process, confine it with Landlock and seccomp, then execute another program.

Run as a separate program, `python -IS landlock.py DESCRIPTOR PROGRAM ARGUMENT…`. From the descriptor it reads JSON:
`cwd`, `env`, `limits` as pairs, `oom_score`, `filter`, a seccomp program as hexadecimal digits or empty, and `rules`: null
or `{"read": [paths], "write": [paths], "network": bool}`.
It imports the standard library only, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 0b11
_SCOPED_SOCKETS_AND_SIGNALS = 0b11

_SYSTEM_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198), "riscv64": (0xC00000F3, 198)}
"""The architecture's number and that of its call `socket`, by machine."""
_IO_URING_SETUP = 425
"""A call whose queue opens and connects sockets too; the same number everywhere."""
_X32_CALLS = 1 << 30
_FILTER = 2
_LOAD, _IS_EQUAL, _IS_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL, _ARCHITECTURE = 0, 4
"""Offsets in what a filter reads."""
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | errno.EACCES, 0x7FFF0000

_libc = ctypes.CDLL(None, use_errno=True)


def detect_landlock() -> int:
    """Landlock's version on this kernel, 0 without it and where sockets can't be refused."""
    if sys.platform != "linux" or os.uname().machine not in _SYSTEM_CALLS:
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def confine(*, read: Iterable[str], write: Iterable[str], network: bool) -> None:
    """Restrict this process and its children to these paths. Raises `OSError`."""
    abi = detect_landlock()
    ruleset = _ruleset(abi, network=network)
    try:
        for path in read:
            _allow(ruleset, path, _READING)
        for path in write:
            _allow(ruleset, path, _all_rights(abi))
        _give_up_privileges()
        _check_result(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "restrict")
    finally:
        os.close(ruleset)
    if not network:
        # Refuse to open sockets: Landlock knows plain TCP only, not UDP, Multipath TCP, Fast Open or Unix
        # sockets.
        architecture, socket = _SYSTEM_CALLS[os.uname().machine]
        # Each is an operation, how many to skip if it is true and if not, and a number.
        program = (
            (_LOAD, 0, 0, _ARCHITECTURE),
            (_IS_EQUAL, 1, 0, architecture),
            (_RETURN, 0, 0, _KILL),
            (_LOAD, 0, 0, _CALL),
            (_IS_AT_LEAST, 3, 0, _X32_CALLS),
            (_IS_EQUAL, 2, 0, socket),
            (_IS_EQUAL, 1, 0, _IO_URING_SETUP),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE),
        )
        install_filter(b"".join(struct.pack("HBBI", *each) for each in program))


def install_filter(program: bytes) -> None:
    """Install a seccomp program in this process and its children. Raises `OSError`."""
    _give_up_privileges()
    code = ctypes.create_string_buffer(program)
    filter_header = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(code)))
    _check_result(_libc.prctl(_PR_SET_SECCOMP, _FILTER, filter_header, 0, 0), "install a filter")


def _give_up_privileges() -> None:
    """Without this, only root may restrict a process; programs can't gain privileges afterwards."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _all_rights(abi: int) -> int:
    """Return every right in this version of the interface."""
    return (1 << (13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16)) - 1


def _ruleset(abi: int, *, network: bool) -> int:
    scoped = _SCOPED_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    attributes = struct.pack("QQQ", _all_rights(abi), 0 if network or abi < 4 else _TCP, scoped)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    buffer = ctypes.create_string_buffer(attributes[:size], size)
    return _check_result(_libc.syscall(_CREATE_RULESET, buffer, size, 0), "create the rules")


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path can't be reached anyway
    try:
        if not Path(path).is_dir():
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        buffer = ctypes.create_string_buffer(rule, len(rule))
        _check_result(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, buffer, 0), f"allow {path}")
    finally:
        os.close(descriptor)


def _check_result(result: int, doing: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"The sandbox could not {doing}: {os.strerror(number)}")
    return result


def main(descriptor: int, command: list[str]) -> None:
    """Apply the descriptor's limits and rules, then execute the command."""
    # Die with the worker; the worker finds the children.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with open(descriptor, "rb") as stream:
        request = json.load(stream)
    Path("/proc/self/oom_score_adj").write_text(str(request["oom_score"]))
    for which, limit in request["limits"]:
        hard = resource.getrlimit(which)[1]
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(which, (value, value))
    os.chdir(request["cwd"])
    if rules := request["rules"]:
        confine(read=rules["read"], write=rules["write"], network=rules["network"])
    if program := bytes.fromhex(request["filter"]):
        # Limits alone promise nothing: they also work on a kernel without seccomp.
        with suppress(OSError) if not rules else nullcontext():
            install_filter(program)
    # Python ignores them, and so would the command.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, request["env"])  # noqa: S606  # this program exists to execute the command
    except OSError as error:
        sys.exit(_cannot_start(command[0], error))


def _cannot_start(program: str, error: OSError) -> int:
    """Print a shell's message and return its exit code."""
    sys.stderr.write(f"{program}: {error.strerror}\n")
    return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
