"""Build the seccomp filter that leaves a command the kinds of sockets that network namespaces contain.

A namespace doesn't contain sockets of virtual machines (`AF_VSOCK`), for example: they lead to the machine's host.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from dataclasses import dataclass

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16, 17)
"""What remains; the numbers are Linux's AF_NETLINK and AF_PACKET, which other systems' Python doesn't know."""

_IO_URING_SETUP = 425
"""A call whose queue opens sockets too; the same number everywhere."""
_X32_CALLS = 1 << 30
_LOAD, _IS_EQUAL, _IS_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in what a filter reads, on little-endian machines."""
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | errno.EACCES, 0x7FFF0000

Instruction = tuple[int, int, int, int]
"""An operation, how many instructions to skip if it is true and if not, and a number."""


@dataclass(frozen=True)
class _Calls:
    """The system calls of an architecture."""

    architecture: int
    socket: int
    refused: tuple[int, ...] = (_IO_URING_SETUP,)


_X86_64, _AARCH64, _RISCV64 = _Calls(0xC000003E, 41), _Calls(0xC00000B7, 198), _Calls(0xC00000F3, 198)
# `socketcall` takes its arguments from memory, where a filter can't read them.
_I386, _ARM = _Calls(0x40000003, 359, (_IO_URING_SETUP, 102)), _Calls(0x40000028, 281)
_MACHINES = {"x86_64": (_X86_64, _I386), "aarch64": (_AARCH64, _ARM), "riscv64": (_RISCV64,)}
"""What each machine runs, its 32-bit programs included."""


def socket_filter() -> bytes:
    """Return the filter's program for this machine; empty where its system calls aren't known."""
    known = _MACHINES.get(os.uname().machine, ())
    program = [each for calls in known for each in _of(calls)]
    return (
        b"".join(struct.pack("HBBI", *each) for each in (*program, (_RETURN, 0, 0, _KILL))) if known else b""
    )


def _of(calls: _Calls) -> list[Instruction]:
    """Return an architecture's part; it skips itself for others."""
    tests = [(_IS_AT_LEAST, _X32_CALLS)] if calls is _X86_64 else []
    tests += [(_IS_EQUAL, number) for number in calls.refused]
    body = [
        (operation, len(tests) - at + len(FAMILIES) + 1, 0, number)
        for at, (operation, number) in enumerate(tests)
    ]
    body += [
        (_IS_EQUAL, 0, len(FAMILIES) + 2, calls.socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *((_IS_EQUAL, len(FAMILIES) - at, 0, int(family)) for at, family in enumerate(FAMILIES)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IS_EQUAL, 0, len(body) + 1, calls.architecture),
        (_LOAD, 0, 0, _CALL),
        *body,
    ]
