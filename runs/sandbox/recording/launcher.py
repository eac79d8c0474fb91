"""Ask about every execution from here on, then execute another program.

Run as a separate program, `python -IS launcher.py SOCKET PROGRAM ARGUMENT…`, outside the sandbox. It installs a seccomp
filter that asks its listener about `execve` and `execveat`, sends the listener over the socket, and executes the program,
such as bubblewrap; everything below inherits the filter. Standard library only, so that it starts in milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

_SET_MODE_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_PR_SET_NO_NEW_PRIVS = 38
_LOAD, _IS_EQUAL, _IS_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL, _ARCHITECTURE = 0, 4
"""Offsets in what a filter reads."""
_ASK, _ALLOW = 0x7FC00000, 0x7FFF0000
_SOL_SOCKET, _SCM_RIGHTS, _RIGHTS_LENGTH = 1, 1, 20
_X32 = 1 << 30

# The architecture, then its `execve` and `execveat`, for each kind of program that the machine runs.
_X86_64 = (0xC000003E, (59, 322, _X32 + 520, _X32 + 545))
_I386, _ARM = (0x40000003, (11, 358)), (0x40000028, (11, 387))
_AARCH64, _RISCV64 = (0xC00000B7, (221, 281)), (0xC00000F3, (221, 281))
MACHINES: dict[str, tuple[tuple[int, tuple[int, ...]], ...]] = {
    "x86_64": (_X86_64, _I386),
    "aarch64": (_AARCH64, _ARM),
    "riscv64": (_RISCV64,),
}
SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277}

_libc = ctypes.CDLL(None, use_errno=True)


def build_filter() -> bytes:
    """Return the filter for this machine: a question for each execution, everything else allowed."""
    code: list[tuple[int, int, int, int]] = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for architecture, calls in MACHINES[os.uname().machine]:
        body = [(_LOAD, 0, 0, _CALL)]
        body += [(_IS_EQUAL, len(calls) - at, 0, call) for at, call in enumerate(calls)]
        body += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ASK)]
        code += [(_IS_EQUAL, 0, len(body), architecture), *body]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *each) for each in code)


def listen() -> int:
    """Install the filter in this process and return its listener. Raises `OSError`."""
    code = build_filter()
    raw = ctypes.create_string_buffer(code)
    filter_header = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(raw)))
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Since Linux 5.19, no signal interrupts a question.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = _libc.syscall(SECCOMP[os.uname().machine], _SET_MODE_FILTER, flags, filter_header)
        if listener >= 0:
            return int(listener)
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def send_listener(descriptor: int, listener: int) -> None:
    """Send the listener over a socket. Raises `OSError`."""
    # Importing `socket` takes a third of this program's time.
    data = ctypes.create_string_buffer(b"x")
    parts = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(data), 1))
    rights = ctypes.create_string_buffer(
        struct.pack("Niii4x", _RIGHTS_LENGTH, _SOL_SOCKET, _SCM_RIGHTS, listener)
    )
    header = struct.pack(
        "PIPNPNi4x", 0, 0, ctypes.addressof(parts), 1, ctypes.addressof(rights), len(rights.raw) - 1, 0
    )
    if _libc.sendmsg(descriptor, ctypes.create_string_buffer(header), 0) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(descriptor: int, command: list[str]) -> None:
    """Send the listener over the socket, then execute the command."""
    try:
        listener = listen()
        send_listener(descriptor, listener)
    except OSError as error:
        sys.exit(f"The tool can't be recorded: {error.strerror}")
    os.close(listener)
    os.close(descriptor)
    # Python ignores them, and so would all that it executes: a tool would not end at a closed pipe.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    os.execvp(command[0], command)  # noqa: S606  # this program exists to execute the command


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
