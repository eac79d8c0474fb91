"""The steps of a trial."""

from __future__ import annotations

import pytest

from evaluators.model import Event, Transcript
from runs.models import CommandRecord
from runs.results.trial_page.steps import readable_text
from runs.results.trial_page.timeline import build_timeline
from tests.shell_events import shell


def command(n, **changes):
    return CommandRecord(n=n, line=f"tool {n}", **changes)


def of(*events):
    return Transcript(events=events, source="events")


def test_messages_appear_between_commands():
    found = build_timeline(
        of(Event("message", role="assistant", text="First."), *shell("ls"), Event("raw", text="noise")), []
    )
    assert [(step.number, step.text) for group in found.groups for step in group.steps] == [
        (0, "First."),
        (1, ""),
    ]


def test_calls_of_other_programs_are_marked():
    (group,) = build_timeline(of(*shell("ls")), []).groups
    assert (group.steps[0].ours, group.steps[0].line) == (False, "ls")


def test_two_commands_in_one_line_are_one_step():
    commands = [command(1, event=0, exit_code=0), command(2, event=0, exit_code=1, failed=True)]
    (group,) = build_timeline(of(*shell("tool a && tool b", exit_code=1)), commands).groups
    assert (group.steps[0].line, group.steps[0].failed) == ("tool a && tool b", True)


def test_a_tool_call_shows_its_name_and_input():
    (group,) = build_timeline(of(Event("tool_call", name="create_task", input="x")), []).groups
    assert group.steps[0].line == "create_task x"


def test_attempts_share_a_group_with_help_between():
    commands = [
        command(1, failed=True),
        command(2, help=True),
        command(3, retry_of=1, failed=True),
        command(4, retry_of=3),
        command(5),
    ]
    groups = build_timeline(None, commands).groups
    assert [len(group.steps) for group in groups] == [4, 1]
    assert f"{groups[0].number}, {groups[0].caption}" == "3 attempts, succeeded at attempt 3, opened help"
    assert [step.retry for step in groups[0].steps] == [0, 0, 1, 2]


def test_attempts_that_never_succeed_say_so():
    groups = build_timeline(None, [command(1, failed=True), command(2, retry_of=1, failed=True)]).groups
    assert f"{groups[0].number}, {groups[0].caption}" == "2 attempts, never succeeded"


def test_the_first_command_of_all_belongs_to_its_attempts():
    commands = [command(0, failed=True), command(1, retry_of=0, failed=True)]
    (group,) = build_timeline(None, commands).groups
    assert ([step.number for step in group.steps], f"{group.number}, {group.caption}") == (
        [1, 2],
        "2 attempts, never succeeded",
    )


def test_one_attempt_is_one():
    commands = [command(1, failed=True), command(2), command(3, retry_of=1, failed=True)]
    group = build_timeline(None, commands).groups[-1]
    assert f"{group.number}, {group.caption}" == "1 attempt, never succeeded"


def test_other_work_between_attempts_parts_them():
    commands = [command(1, failed=True), command(2), command(3, retry_of=1)]
    assert len(build_timeline(None, commands).groups) == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("as it is", "as it is"),
        ({"stdout": "out", "stderr": "err", "exit": 1}, "out\nerr"),
        ({"a": 1}, '{\n  "a": 1\n}'),
        ([], "[]"),
    ],
)
def test_outputs_become_text(value, text):
    assert readable_text(value) == text
