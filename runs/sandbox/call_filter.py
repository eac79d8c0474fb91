"""Build the seccomp filter of a command.

Every command is without kernel keyrings, which all trials of the worker's user share, and without the calls that take
another process's descriptors or write to its memory. A command whose network is contained is also left with the kinds
of sockets that network namespaces contain: sockets of virtual machines (`AF_VSOCK`), for example, lead to the machine's
host.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from dataclasses import dataclass
from functools import cache

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16, 17)
"""What remains; the numbers are Linux's AF_NETLINK and AF_PACKET, which other systems' Python doesn't know."""

_IO_URING_SETUP = 425
"""A call whose queue opens sockets too; the same number everywhere."""
_PIDFD_GETFD = 438
"""The same number everywhere."""
_X32_CALLS = 1 << 30
_LOAD, _IS_EQUAL, _IS_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in what a filter reads, on little-endian machines."""
_KILL, _FAIL, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000

Instruction = tuple[int, int, int, int]
"""An operation, how many instructions to skip if it is true and if not, and a number."""


@dataclass(frozen=True)
class _Calls:
    """The system calls of an architecture."""

    architecture: int
    socket: int
    keyrings: tuple[int, ...]
    """`add_key`, `request_key` and `keyctl`, which answer as on a kernel without keyrings."""
    intrusions: tuple[int, ...]
    """`process_vm_writev` and `pidfd_getfd`."""
    refused: tuple[int, ...] = (_IO_URING_SETUP,)
    """Refused where sockets are."""


_X86_64 = _Calls(
    0xC000003E,
    41,
    (*range(248, 251), *range(_X32_CALLS + 248, _X32_CALLS + 251)),
    (311, _PIDFD_GETFD, _X32_CALLS + 540, _X32_CALLS + _PIDFD_GETFD),
)
# `socketcall` takes its arguments from memory, where a filter can't read them.
_I386 = _Calls(0x40000003, 359, (286, 287, 288), (348, _PIDFD_GETFD), (_IO_URING_SETUP, 102))
_AARCH64 = _Calls(0xC00000B7, 198, (217, 218, 219), (271, _PIDFD_GETFD))
_ARM = _Calls(0x40000028, 281, (309, 310, 311), (377, _PIDFD_GETFD))
_RISCV64 = _Calls(0xC00000F3, 198, (217, 218, 219), (271, _PIDFD_GETFD))
_MACHINES = {"x86_64": (_X86_64, _I386), "aarch64": (_AARCH64, _ARM), "riscv64": (_RISCV64,)}
"""What each machine runs, its 32-bit programs included."""


@cache
def call_filter(*, sockets: bool, machine: str = os.uname().machine) -> bytes:
    """Return the filter's program for a machine; empty where its system calls aren't known.

    `sockets` says whether to refuse the kinds of sockets that a network namespace doesn't contain.
    """
    known = _MACHINES.get(machine, ())
    program = [instruction for calls in known for instruction in _of(calls, sockets=sockets)]
    return (
        b"".join(struct.pack("HBBI", *instruction) for instruction in (*program, (_RETURN, 0, 0, _KILL)))
        if known
        else b""
    )


def _of(calls: _Calls, *, sockets: bool) -> list[Instruction]:
    """Return an architecture's part; it skips itself for others."""
    body = [
        *_fail(_equal(calls.keyrings), errno.ENOSYS),
        *_fail(_equal(calls.intrusions), errno.EPERM),
        *(_sockets(calls) if sockets else ()),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IS_EQUAL, 0, len(body) + 1, calls.architecture),
        (_LOAD, 0, 0, _CALL),
        *body,
    ]


_Test = tuple[int, int]
"""A comparison and the number to compare with."""


def _equal(numbers: tuple[int, ...]) -> list[_Test]:
    return [(_IS_EQUAL, number) for number in numbers]


def _fail(tests: list[_Test], code: int) -> list[Instruction]:
    """Return the part that makes calls that pass a test fail with an error number, and continues for all others."""
    last = len(tests) - 1
    return [
        *((test, last - at, int(at == last), number) for at, (test, number) in enumerate(tests)),
        (_RETURN, 0, 0, _FAIL | code),
    ]


def _sockets(calls: _Calls) -> list[Instruction]:
    x32 = [(_IS_AT_LEAST, _X32_CALLS)] if calls is _X86_64 else []
    return [
        *_fail([*x32, *_equal(calls.refused)], errno.EACCES),
        (_IS_EQUAL, 0, len(FAMILIES) + 2, calls.socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *((_IS_EQUAL, len(FAMILIES) - at, 0, int(family)) for at, family in enumerate(FAMILIES)),
        (_RETURN, 0, 0, _FAIL | errno.EACCES),
    ]
