"""A trial's pages with the largest and deepest values that an agent can leave."""

from __future__ import annotations

import time

import pytest

from evaluators.transcripts import parse
from runs.models import TranscriptRecord
from runs.models.trial import transcript_row
from runs.queue import statements
from tests.builders import make_member, make_project, make_run, make_suite, make_trial
from tests.web.trials.pages import address

pytestmark = [pytest.mark.django_db, pytest.mark.hostile]


@pytest.fixture
def trial_with(client):
    """Return a function that stores a trial whose agent left this value."""
    project = make_project()
    client.force_login(make_member(project))

    def store(value: str):
        trial = make_trial(make_run(make_suite(project)), "create")
        lines = f'{{"type": "tool_call", "id": "1", "name": "x", "input": {{"a": {value}}}}}\n'
        lines += f'{{"type": "tool_result", "id": "1", "output": {value}}}\n'
        statements.insert(TranscriptRecord, [transcript_row(trial.pk, parse("trace", lines.encode()))])
        return trial

    return store


@pytest.mark.parametrize("part", ["", "transcript/", "replay/", "replay.cast"])
def test_deep_values_are_shown(client, trial_with, part):
    trial = trial_with("[" * 920 + "0" + "]" * 920)
    assert client.get(address(trial, part)).status_code == 200


def test_long_lists_are_shown_quickly(client, trial_with):
    trial = trial_with("[" * 50 + "0," * 1_500_000 + "0" + "]" * 50)
    started = time.thread_time()
    assert client.get(address(trial)).status_code == 200
    assert time.thread_time() - started < 6
