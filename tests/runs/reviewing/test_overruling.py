"""Overruled scores: what follows from them, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from runs.errors import RequestError, StaleReview
from runs.models import Change, Run, RunMeasure, SearchEntry, Trial
from runs.warehouse.digests import digests_of
from runs.warehouse.overruling import overrule, undo
from tests.builders import (
    close,
    make_compared,
    make_member,
    make_run,
    make_suite,
    make_trial,
    score,
)

pytestmark = pytest.mark.django_db
FAILED_BY_JUDGE = [score("gates", "file_exists", 1.0, True), score("judge", "judge", 0.4, False)]


@pytest.fixture
def trial(project: Any) -> Trial:
    """Return a trial of a closed run that only its judge failed."""
    run = make_run(make_suite(project, ("create",)))
    made = make_trial(run, outcome="fail", scores=FAILED_BY_JUDGE)
    close(run)
    return made


def _state(trial: Trial) -> tuple[Any, ...]:
    trial.refresh_from_db()
    run = Run.objects.get(pk=trial.run_id)
    rate = RunMeasure.objects.get(run=run, scenario=None, measure__layer="trial", measure__name="pass").mean
    digest = digests_of([run.pk])[run.pk].trials[0].outcome
    return trial.outcome, run.outcome, run.passed, run.failed, rate, digest


def test_overruling_changes_outcome_and_rollups(trial: Trial, ada: Any) -> None:
    made = overrule(trial, 1, passed=True, reason="The judge missed the file.", by=ada)
    assert _state(trial) == ("pass", "pass", 1, 0, 1.0, "pass")
    assert "Overruled by ada" in trial.scores[1]["message"] and trial.scores[1]["value"] == 0.4
    assert made.original["passed"] is False
    assert SearchEntry.objects.filter(pk=trial.pk).exists()


def test_undoing_restores_everything(trial: Trial, ada: Any) -> None:
    made = overrule(trial, 1, passed=True, reason="Wrong.", by=ada)
    undo(made, by=ada)
    assert _state(trial) == ("fail", "fail", 0, 1, 0.0, "fail")
    assert trial.scores == FAILED_BY_JUDGE


def test_the_second_to_overrule_is_refused(trial: Trial, ada: Any, project: Any) -> None:
    bob = make_member(project, "runner", "bob")
    overrule(trial, 1, passed=True, reason="Fine.", by=ada)
    with pytest.raises(StaleReview, match="ada overruled this score"):
        overrule(trial, 1, passed=True, reason="Fine too.", by=bob)


def test_undoing_twice_is_refused(trial: Trial, ada: Any) -> None:
    made = overrule(trial, 1, passed=True, reason="Fine.", by=ada)
    undo(made, by=ada)
    with pytest.raises(StaleReview, match="undone this already"):
        undo(made, by=ada)


@pytest.mark.parametrize(
    ("position", "reason", "sentence"),
    [(1, " ", "Give a reason"), (7, "Why", "no score at position 7"), (0, "Why", "passed already")],
)
def test_what_cannot_be_overruled(trial: Trial, ada: Any, position: int, reason: str, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        overrule(trial, position, passed=True, reason=reason, by=ada)


def test_overruling_is_never_anonymous(trial: Trial) -> None:
    with pytest.raises(RequestError, match="needs a person"):
        overrule(trial, 1, passed=True, reason="Fine.", by=None)


def test_an_open_run_cannot_be_overruled(project: Any, ada: Any) -> None:
    run = make_run(make_suite(project, ("create",)), state="running")
    trial = make_trial(run, outcome="fail", scores=FAILED_BY_JUDGE)
    with pytest.raises(RequestError, match="in progress"):
        overrule(trial, 1, passed=True, reason="Fine.", by=ada)


def test_the_verdict_against_the_baseline_follows(project: Any, ada: Any) -> None:
    version = make_suite(project, ("create",))
    base = make_compared(version, {"create": "pass"}, trials=6)
    run = make_compared(version, {"create": "pass"}, trials=6, options={"baseline": str(base.pk)})
    before = Change.objects.get(run=run, scenario=None, measure__layer="trial", measure__name="pass").after
    gate = next(n for n, each in enumerate(run.trial_set.first().scores) if each["layer"] == "gates")
    for trial in run.trial_set.all():
        overrule(trial, gate, passed=False, reason="The file is empty.", by=ada)
    after = Change.objects.get(run=run, scenario=None, measure__layer="trial", measure__name="pass").after
    assert (before, after) == (1.0, 0.0)
    run.refresh_from_db()
    assert run.verdict == "regressed"


def test_later_runs_are_compared_again(project: Any, ada: Any) -> None:
    version = make_suite(project, ("create",))
    base = make_compared(version, {"create": "fail"}, trials=6)
    run = make_compared(version, {"create": "pass"}, trials=6, options={"baseline": str(base.pk)})
    assert run.verdict == "improved"
    for trial in base.trial_set.all():
        for layer in ("gates", "judge"):
            position = next(n for n, each in enumerate(trial.scores) if each["layer"] == layer)
            overrule(trial, position, passed=True, reason="Fine.", by=ada)
            trial.refresh_from_db()
    run.refresh_from_db()
    assert run.verdict != "improved"
