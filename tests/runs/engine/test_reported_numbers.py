"""Numbers that agents report and no column takes: the trial ends, once, and is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalhub.teams.models import Project
from evaluators.model import MOST_TOKENS
from runs.engine import run_here
from runs.models import Target, Trial
from tests.builders import make_project
from tests.runs.carried import GOOD
from tests.runs.carrying import launch, suite_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.hostile, pytest.mark.timeout(60)]

ENORMOUS = 10**400


@pytest.fixture
def project() -> Project:
    return make_project("default")


def carried(project: Project, definition: dict[str, Any], folder: Path) -> Trial:
    """Return the trial of a target, which was started once."""
    Target.objects.create(
        project=project,
        name=definition["name"],
        provider=definition["provider"],
        definition=definition,
        base_folder=str(folder),
    )
    run = launch(suite_of(project, bad=GOOD), targets=[definition["name"]]).runs.get()
    run_here.run_here(run.launch)
    run.refresh_from_db()
    trial: Trial = run.trial_set.get()
    assert (run.state, trial.state, trial.starts) == ("finished", "finished", 1)
    return trial


def reporting(project: Project, folder: Path, *, cost: float = 1, tokens: int = 1) -> Trial:
    """Return the trial of an agent that reports this cost and so many tokens."""
    answered = {"id": "1", "content": [{"type": "text", "text": "hi"}]}
    usage = {"input_tokens": tokens, "output_tokens": tokens}
    stream = [
        {"type": "system", "subtype": "init", "session_id": "x"},
        {"type": "assistant", "message": answered},
        {"type": "result", "subtype": "success", "result": "x", "total_cost_usd": cost, "usage": usage},
    ]
    (folder / "stream.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in stream))
    definition = {"name": "tape", "provider": "replay", "path": "stream.jsonl", "parser": "claude_code"}
    return carried(project, definition, folder)


@pytest.mark.parametrize("tokens", [10**20, ENORMOUS])
def test_too_many_tokens_are_limited(project, tmp_path, tokens):
    trial = reporting(project, tmp_path, tokens=tokens)
    assert (trial.outcome, trial.tokens_in, trial.tokens_out) == ("pass", MOST_TOKENS, MOST_TOKENS)


def test_negative_tokens_are_none(project, tmp_path):
    trial = reporting(project, tmp_path, tokens=-5)
    assert (trial.tokens_in, trial.tokens_out) == (0, 0)


@pytest.mark.parametrize("cost", [-5, -0.01, 1e308, ENORMOUS])
def test_an_impossible_cost_is_unknown(project, tmp_path, cost):
    trial = reporting(project, tmp_path, cost=cost)
    assert (trial.outcome, trial.cost_usd, trial.run.cost_usd) == ("pass", None, None)


def test_a_result_that_cannot_be_stored_is_an_error(project, tmp_path):
    trial = carried(project, {"name": "odd", "provider": "mock", "exit_code": ENORMOUS}, tmp_path)
    assert (trial.outcome, trial.error_kind) == ("error", "internal")
    assert "can't be stored" in trial.error
