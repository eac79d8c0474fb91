"""A trial's pages with the largest and deepest values that an agent can leave."""

from __future__ import annotations

import time

import pytest

from evaluators.transcripts import parse
from runs.db import statements
from runs.models import TranscriptRecord
from runs.models.trial import transcript_row
from tests.builders import make_member, make_project, make_run, make_suite, make_trial
from tests.web.results.trials.pages import address

pytestmark = [pytest.mark.django_db, pytest.mark.hostile, pytest.mark.one_database]


@pytest.fixture
def stored(client):
    """Return a function that stores a trial whose agent printed these events."""
    project = make_project()
    client.force_login(make_member(project))

    def store(lines: str):
        trial = make_trial(make_run(make_suite(project)), "create")
        statements.insert(TranscriptRecord, [transcript_row(trial.pk, parse("trace", lines.encode()))])
        return trial

    return store


@pytest.fixture
def trial_with(stored):
    """Return a function that stores a trial whose agent left this value."""

    def store(value: str):
        lines = f'{{"type": "tool_call", "id": "1", "name": "x", "input": {{"a": {value}}}}}\n'
        lines += f'{{"type": "tool_result", "id": "1", "output": {value}}}\n'
        return stored(lines)

    return store


@pytest.mark.parametrize("part", ["", "transcript/", "replay/", "replay.cast"])
def test_deep_values_are_shown(client, trial_with, part):
    trial = trial_with("[" * 920 + "0" + "]" * 920)
    assert client.get(address(trial, part)).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "listed", "rest"),
    [("", "<dt><code>tool_", 199_800), ("replay/", 'data-do="seek" data-step', 199_800)],
    ids=["page", "replay"],
)
def test_many_tool_names_do_not_fill_a_page(client, stored, part, listed, rest):
    call = '{{"type": "tool_call", "id": "{0}", "name": "tool_{0}", "input": {{}}}}'
    trial = stored("\n".join(call.format(number) for number in range(200_000)))
    shown = client.get(address(trial, part)).content.decode()
    assert len(shown) < 500_000
    assert shown.count(listed) == 200
    assert f"… and {rest:,} more" in shown


def test_every_list_of_a_trial_has_an_end(client, stored):
    trial = stored("[]")
    many = [f"entry {number}" for number in range(5_000)]
    trial.detail |= {
        "warnings": many,
        "notes": many,
        "scripts": many,
        "diagnosis": [{"pattern": "x", "sentence": "s", "evidence": many}],
    }
    score = {"value": 1.0, "passed": True, "message": "m", "detail": {}}
    trial.scores = [
        *({**score, "layer": "gates", "name": each} for each in many),
        {
            **score,
            "layer": "scripts",
            "name": "s",
            "detail": {"metrics": dict.fromkeys(many, 1), "warnings": many},
        },
    ]
    trial.save()
    shown = client.get(address(trial)).content.decode()
    assert len(shown) < 1_000_000
    assert shown.count("… and 4,800 more") == 6


def test_long_lists_are_shown_quickly(client, trial_with):
    trial = trial_with("[" * 50 + "0," * 1_500_000 + "0" + "]" * 50)
    started = time.thread_time()
    assert client.get(address(trial)).status_code == 200
    assert time.thread_time() - started < 6
