"""Generated shell sessions, recorded: calls and failures are those of the tool's own log."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.tool import Tool
from tests.layer1.own_log import counts, read_log
from tests.layer1.recorded import LOG, run_recorded
from tests.layer1.shell_sessions import sessions

pytestmark = pytest.mark.slow

SAMPLE, ALL = 12, 200


def counted(lines: list[str], folder: Path) -> tuple[Interaction, dict[str, int]]:
    """Run a session as an agent, a program that starts a shell for each line; return evhalub's and the tool's counts."""
    workspace, scratch = folder / "workspace", folder / "scratch"
    (workspace / "sub").mkdir(parents=True)
    scratch.mkdir()
    (workspace / "f.txt").write_text("x\n")
    (workspace / "agent.sh").write_text("".join(f"bash -c {shlex.quote(line)}\n" for line in lines))
    _, record = run_recorded("sh agent.sh", (workspace, scratch))
    events = [Event("tool_call", str(n), "bash", line) for n, line in enumerate(lines)]
    found = analyse(Transcript(tuple(events), "stream"), Tool(binary="mt"), completed=True, record=record)
    return found, counts(read_log(workspace / LOG))


def check(count: int, folder: Path) -> None:
    for n, lines in enumerate(sessions(8, count)):
        found, truth = counted(lines, folder / str(n))
        recorded = {"calls": found.total_commands, "failed": found.error_count, "helps": found.help_seeking}
        assert recorded == truth, "\n".join([*(command.line for command in found.commands), "", *lines])
        assert (found.ends, found.known, found.indirect) == ("recorded", truth["calls"], 0)
        unmatched = [command.line for command in found.commands if command.event is None]
        assert not unmatched, "\n".join([*unmatched, "", *lines])


def test_recorded_counts_are_those_of_the_tools_own_log(tmp_path: Path) -> None:
    check(SAMPLE, tmp_path)


@pytest.mark.slow
def test_recorded_counts_of_all_sessions_are_those_of_the_tools_own_log(tmp_path: Path) -> None:
    check(ALL, tmp_path)
