"""A trial's first screen: why it failed, and its steps on an axis of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from evaluators.model import Event, Transcript
from runs.models import TranscriptRecord
from tests.builders import make_trial
from tests.shell_events import shell
from tests.trial_parts import make_command, make_transcript
from tests.web.results.trials.pages import page

BEGAN = datetime(2026, 11, 1, 10, tzinfo=UTC)


def at(seconds: float) -> str:
    return (BEGAN + timedelta(seconds=seconds)).isoformat()


def call(number: int, command: str, began: float, ended: float, exit_code: int = 0) -> list[Event]:
    """Return a call that says when it began and ended."""
    return [
        Event("tool_call", f"c{number}", "bash", command, timestamp=at(began)),
        Event("tool_result", f"c{number}", output="no name\n", exit_code=exit_code, timestamp=at(ended)),
    ]


def labels(text) -> list[str]:
    return [each["aria-label"] for each in text.all("#steps svg[aria-label]")]


@pytest.fixture
def trial(run):
    """Return a failed trial whose events say when they were."""
    trial = make_trial(run, outcome="fail")
    events = [
        Event("message", role="user", text="Add a task.", timestamp=at(0)),
        Event("message", role="assistant", text="I add it.", timestamp=at(2)),
        *call(1, "task add", 6, 6.5, 2),
        Event("error", text="429: too many requests", timestamp=at(12.5)),
        *call(2, "ls", 14.5, 15.5),
    ]
    make_transcript(trial, events)
    make_command(trial, 0, "task add", subcommand="add", exit_code=2, failed=True, event=2)
    return trial


def test_steps_are_on_one_axis_with_the_models_turns_between(signed_in, trial):
    text = page(signed_in(), trial)
    assert [each.text for each in text.all("[aria-label='Where the time went'] li")] == [
        "model 8.0 s",
        "failed calls 0.50 s",
        "other calls 1.0 s",
        "waiting 6.0 s",
    ]
    assert labels(text) == [
        "from 0 s, 0.0 s",
        "from 0 s, 2.0 s",
        "from 2 s, 4.0 s",
        "from 6 s, 0.50 s, failed",
        "from 6.5 s, 6.0 s",
        "from 12.5 s, 2.0 s",
        "from 14.5 s, 1.0 s",
    ]
    assert "Times were not recorded" not in text


def test_without_times_the_order_alone_is_drawn(signed_in, run):
    trial = make_trial(run, outcome="fail")
    make_transcript(trial, [*shell("task add", "no name", 2), *shell("ls", number=1)])
    text = page(signed_in(), trial)
    assert "Times were not recorded: the bars show the order of the steps." in text
    assert labels(text) == ["step 1 of 2, failed", "step 2 of 2"]
    assert not text.all("[aria-label='Where the time went']")


def test_a_part_of_a_long_trial_has_an_axis_of_its_own(signed_in, run):
    trial = make_trial(run)
    events = [event for n in range(450) for event in call(n, f"ls {n}", 2 * n, 2 * n + 1)]
    make_transcript(trial, events)
    text = page(signed_in(), trial, "?from=400")
    assert "from 13 min, 1.0 s" in labels(text)
    assert next(each.text for each in text.all(".axis text")).endswith("min")


def test_a_call_without_a_time_has_no_bar_among_those_with_one(signed_in, run):
    trial = make_trial(run)
    make_transcript(trial, [*call(1, "ls", 1, 2), *shell("pwd", number=2)])
    assert labels(page(signed_in(), trial)) == ["from 0 s, 1.0 s"]


def test_the_failed_gate_is_in_the_head(signed_in, trial):
    text = page(signed_in(), trial)
    head = text.region("Why it failed")
    assert "Gate 1 of 1: file_exists. out.txt does not exist." in head
    facts = head.facts
    assert (facts["Expected"], facts["Actual"]) == ("a file", "none")
    assert facts["First failed command"] == "1 task add"
    assert head.link("1").address == "#c1"


def test_a_trial_that_passed_has_no_failed_gate(signed_in, run):
    assert not page(signed_in(), make_trial(run)).all("[aria-label='Why it failed']")


def test_a_failed_row_names_its_error_where_it_is_closed(signed_in, run):
    trial = make_trial(run, outcome="fail")
    make_transcript(trial, [*shell("a", "first", 1), *shell("b", "\nsecond\nmore", 1, number=1)])
    rows = page(signed_in(), trial).all("#steps .event")
    assert [[each.text for each in row.all(".why")] for row in rows] == [[], ["second"]]


def test_a_command_found_in_plain_text_says_where_its_output_is(signed_in, run):
    trial = make_trial(run, answer="Done.")
    record = Transcript(source="transcript", text="$ task list\nnothing\nDone.", answer="Done.")
    TranscriptRecord.objects.create(trial=trial, source="transcript", data=TranscriptRecord.pack(record))
    make_command(trial, 0, "task list", subcommand="list", end="estimated")
    text = page(signed_in(), trial)
    assert "No output." not in text
    assert "Its output is in the raw transcript." in text
    assert text.link("raw transcript").address == "?part=raw#transcript"
