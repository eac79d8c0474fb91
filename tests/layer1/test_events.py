"""What is read from an agent's events alone: every end that is stated is right, and no call is missed.

A failed line of `&&` is one failure, of its last command, even if an earlier one failed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.tool import Tool
from tests.layer1.own_log import by_word, install, read_log
from tests.layer1.shell_sessions import sessions

pytestmark = pytest.mark.slow

SAMPLE, ALL = 12, 200


def run_session(lines: list[str], folder: Path) -> Transcript:
    """Run a session's lines in bash, each in a shell of its own, and return what an agent would report."""
    (folder / "sub").mkdir(parents=True)
    (folder / "f.txt").write_text("x\n")
    install(folder, folder / "log.jsonl")
    install(folder / "sub", folder / "log.jsonl", "unused")
    events: list[Event] = []
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    for n, line in enumerate(lines):
        ended = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=30,
            check=False,
        )
        events.append(Event("tool_call", str(n), "bash", line))
        events.append(Event("tool_result", str(n), output=ended.stdout, exit_code=ended.returncode))
    return Transcript(tuple(events), "stream")


def wrong_ends(found: Interaction, folder: Path, events: Sequence[Event]) -> list[str]:
    """Return the commands whose stated end is not the one of the tool's own log, and the calls that are missing.

    Of a line of `&&` that fails, the last command has the failure: it may be that of an earlier one.
    """
    truth = by_word(read_log(folder / "log.jsonl"))
    wrong = []
    for command in found.commands:
        word = command.line.split(" >", 1)[0].split(" 2>", 1)[0].split()[-1]
        codes = truth.pop(word, []) if not command.at_least else truth.get(word, [])
        line = events[command.event or 0].command or ""
        if command.end != "reported" or (command.failed and not codes and "&&" in line):
            continue
        is_right = all(
            code == command.exit_code or (command.exit_code is None and code != 0) for code in codes
        )
        if not is_right or (not command.at_least and len(codes) != 1):
            wrong.append(f"{command.line}: {command.exit_code}, is {codes}")
    loops = {command.line.split()[-1] for command in found.commands if command.at_least}
    wrong += [
        f"missing: {word} {codes}" for word, codes in truth.items() if word not in loops and word != "x"
    ]
    return wrong


def check(count: int, folder: Path) -> dict[str, int]:
    """Run sessions and compare; return the counts of ends."""
    totals = {"known": 0, "unknown": 0}
    for n, lines in enumerate(sessions(7, count)):
        own = folder / str(n)
        transcript = run_session(lines, own)
        found = analyse(transcript, Tool(binary="mt"), completed=True)
        assert not (wrong := wrong_ends(found, own, transcript.events)), "\n".join([*wrong, "", *lines])
        totals["known"] += found.known
        totals["unknown"] += found.unknown_exit
    return totals


def test_every_stated_end_is_right(tmp_path: Path) -> None:
    totals = check(SAMPLE, tmp_path)
    assert min(totals.values()) > 0


@pytest.mark.slow
def test_every_stated_end_is_right_in_all_sessions(tmp_path: Path) -> None:
    check(ALL, tmp_path)
