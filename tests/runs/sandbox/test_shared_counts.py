"""A trial takes few of the inotify instances and namespaces that the worker's user may have, and can't take more."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runs.sandbox import filtered_network
from runs.sandbox.egress import Egress
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT, COMMAND, Profile
from runs.sandbox.sandbox import Level, detect_machine
from tests.requirements import missing
from tests.runs.containments import containment

TAKE_ALL = """
import ctypes, json, os, signal

libc = ctypes.CDLL(None)
NEW_USER = 0x10000000

def takes(attempt):
    count = 0
    while count < 300 and attempt():
        count += 1
    return count

def holds_a_namespace():
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"%d" % (libc.unshare(NEW_USER) == 0))
        signal.pause()
    children.append(child)
    return os.read(reader, 1) == b"1"

def raises(name):
    try:
        with open(f"/proc/sys/user/{name}", "w") as file:
            file.write("1000")
    except OSError:
        return False
    return True

children = []
raised = [name for name in ("max_inotify_instances", "max_user_namespaces") if raises(name)]
found = [raised, takes(lambda: libc.inotify_init() >= 0), takes(holds_a_namespace)]
for child in children:
    os.kill(child, signal.SIGKILL)
print(json.dumps(found))
"""


@pytest.fixture(autouse=True)
def limited_machine() -> None:
    containment(Level.BWRAP)
    if problem := filtered_network.namespaces_problem(detect_machine().bwrap):
        missing("sandbox", f"Namespaces can't be limited here: {problem}.")


@pytest.mark.parametrize(
    ("profile", "egress", "namespaces"),
    [
        (AGENT, Egress.FULL, 8),
        (AGENT, Egress.NONE, 8),
        (AGENT, Egress.INTERNET, 8),
        (COMMAND, Egress.FULL, 0),
    ],
    ids=["full", "no network", "internet", "a gate"],
)
def test_a_command_takes_a_few(tmp_path: Path, profile: Profile, egress: Egress, namespaces: int) -> None:
    if egress is Egress.INTERNET and (problem := filtered_network.filtering_problem()):
        missing("sandbox", f"Networks cannot be filtered here: {problem}.")
    for time in ("first", "second"):  # the second command uses the first one's namespace again
        assert taken(tmp_path / time, profile, egress) == [[], 16, namespaces]


def taken(folder: Path, profile: Profile, egress: Egress) -> list[object]:
    """Return which limits a command could raise, and how many inotify instances and namespaces it could take."""
    workspace, scratch = folder / "workspace", folder / "scratch"
    for each in (workspace, scratch):
        each.mkdir(parents=True)
    sandbox = replace(containment(Level.BWRAP), egress=egress).around(workspace, scratch, profile=profile)
    command = [sys.executable, "-IS", "-c", TAKE_ALL]
    ended = run_process(command, cwd=workspace, env={}, timeout_seconds=60, sandbox=sandbox)
    assert ended.exit_code == 0, ended.stderr
    found: list[object] = json.loads(ended.stdout)
    return found


def test_commands_get_no_descriptor_of_their_namespace(tmp_path: Path) -> None:
    code = "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in range(3, 20) if os.path.exists(f'/proc/self/fd/{n}')])"
    sandbox = containment(Level.BWRAP).around(tmp_path, tmp_path, profile=AGENT)
    command = [sys.executable, "-IS", "-c", code]
    assert run_process(command, cwd=tmp_path, env={}, timeout_seconds=30, sandbox=sandbox).stdout == b"[]\n"
