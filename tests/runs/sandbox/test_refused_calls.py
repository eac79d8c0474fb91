"""A command reaches no kernel keyrings, and no descriptors and memory of other processes, at any level."""

from __future__ import annotations

import errno
import json
import os
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runs.sandbox import filtered_network
from runs.sandbox.call_filter import call_filter
from runs.sandbox.egress import Egress
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT, COMMAND, Profile
from runs.sandbox.sandbox import Level
from tests.requirements import missing
from tests.runs.containments import containment

SESSION = -3
X86_64, I386, AARCH64, ARM, RISCV64 = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028, 0xC00000F3
X32 = 1 << 30
# `add_key`, `request_key`, `keyctl`, then `process_vm_writev` and `pidfd_getfd`, of Linux's own tables.
CALLS = {
    X86_64: ((248, 249, 250), (311, 438)),
    I386: ((286, 287, 288), (348, 438)),
    AARCH64: ((217, 218, 219), (271, 438)),
    ARM: ((309, 310, 311), (377, 438)),
    RISCV64: ((217, 218, 219), (271, 438)),
}
OF_MACHINE = {"x86_64": (X86_64, I386), "aarch64": (AARCH64, ARM), "riscv64": (RISCV64,)}

ATTEMPTS = f"""
import ctypes, json, os, socket, subprocess, sys

(add_key, request_key, keyctl), (process_vm_writev, pidfd_getfd) = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    if libc.syscall(number, *arguments) >= 0:
        return 0
    return ctypes.get_errno()

child = subprocess.Popen(["sleep", "30"])
text = ctypes.create_string_buffer(b"mine")
part = (ctypes.c_void_p * 2)(ctypes.addressof(text), 4)
found = {{
    "add_key": call(add_key, b"user", b"evalhub-test", b"secret", 6, {SESSION}),
    "request_key": call(request_key, b"user", b"evalhub-test", None, {SESSION}),
    "keyctl": call(keyctl, 0, {SESSION}, 1),
    "pidfd_getfd": call(pidfd_getfd, os.pidfd_open(child.pid), 1, 0),
    "process_vm_writev": call(process_vm_writev, os.getpid(), part, 1, part, 1, 0),
    "getpid": call(39 if os.uname().machine == "x86_64" else 172),
}}
child.kill()
print(json.dumps(found))
"""
REFUSED = {
    **dict.fromkeys(("add_key", "request_key", "keyctl"), errno.ENOSYS),
    **dict.fromkeys(("pidfd_getfd", "process_vm_writev"), errno.EPERM),
    "getpid": 0,
}


@pytest.mark.parametrize(
    ("level", "profile", "egress"),
    [
        (Level.BWRAP, AGENT, Egress.INTERNET),
        (Level.BWRAP, AGENT, Egress.NONE),
        (Level.BWRAP, AGENT, Egress.FULL),
        (Level.BWRAP, COMMAND, Egress.FULL),
        (Level.LANDLOCK, AGENT, Egress.FULL),
        (Level.LANDLOCK, COMMAND, Egress.FULL),
        (Level.LIMITS, AGENT, Egress.FULL),
        (Level.LIMITS, COMMAND, Egress.FULL),
    ],
)
def test_keyrings_and_other_processes_are_out_of_reach(
    tmp_path: Path, level: Level, profile: Profile, egress: Egress
) -> None:
    assert attempt(tmp_path, level, profile, egress) == REFUSED


def attempt(folder: Path, level: Level, profile: Profile, egress: Egress) -> dict[str, int]:
    """Return the error numbers of a sandboxed command's calls."""
    contained = replace(containment(level), egress=egress)
    if egress is Egress.INTERNET and (problem := filtered_network.filtering_problem()):
        missing("sandbox", f"Networks cannot be filtered here: {problem}.")
    workspace, scratch = folder / "workspace", folder / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    sandbox = contained.around(workspace, scratch, profile=profile)
    numbers = json.dumps(CALLS[OF_MACHINE[os.uname().machine][0]])
    command = [sys.executable, "-IS", "-c", ATTEMPTS, numbers]
    ended = run_process(command, cwd=workspace, env={}, timeout_seconds=30, sandbox=sandbox)
    assert ended.exit_code == 0, ended.stderr
    found: dict[str, int] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("sockets", [False, True])
@pytest.mark.parametrize(
    ("machine", "architecture"), [(machine, each) for machine, known in OF_MACHINE.items() for each in known]
)
def test_every_architecture_has_its_numbers(machine: str, architecture: int, sockets: bool) -> None:
    program = call_filter(sockets=sockets, machine=machine)
    keyrings, intrusions = CALLS[architecture]
    answers = {number: run(program, architecture, number) for number in range(600)}
    assert {number for number, answer in answers.items() if answer == fails(errno.ENOSYS)} == {*keyrings}
    assert {number for number, answer in answers.items() if answer == fails(errno.EPERM)} == {*intrusions}
    refused = {number for number, answer in answers.items() if answer == fails(errno.EACCES)}
    assert (425 in refused) is sockets
    assert {*answers.values()} <= {ALLOW, *map(fails, (errno.ENOSYS, errno.EPERM, errno.EACCES))}


def test_x32_is_no_way_around() -> None:
    program = call_filter(sockets=False, machine="x86_64")
    assert [run(program, X86_64, X32 + each) for each in (248, 249, 250)] == [fails(errno.ENOSYS)] * 3
    assert [run(program, X86_64, X32 + each) for each in (438, 540)] == [fails(errno.EPERM)] * 2
    assert run(program, X86_64, X32 + 39) == ALLOW
    assert run(call_filter(sockets=True, machine="x86_64"), X86_64, X32 + 39) == fails(errno.EACCES)


def test_an_unknown_machine_has_no_filter() -> None:
    assert call_filter(sockets=True, machine="s390x") == b""


ALLOW = 0x7FFF0000


def fails(number: int) -> int:
    """Return a filter's answer for an error number."""
    return 0x00050000 | number


def run(program: bytes, architecture: int, number: int) -> int:
    """Return what a filter answers to a call without arguments, as the kernel reads classic BPF."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *[0] * 6)
    code = [*struct.iter_unpack("=HBBI", program)]
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x06:
            return int(value)
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
            continue
        holds = accumulator == value if operation == 0x15 else accumulator >= value
        at += if_true if holds else if_false
