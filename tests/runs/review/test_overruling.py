"""Overruled scores: what follows from them, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from runs.errors import RequestError, StaleReview
from runs.models import Change, Run, RunMeasure, SearchEntry, Trial
from runs.results.digests import digests_of
from runs.review.calibrations import calibration_of
from runs.review.overruling import overrule, undo_overrule
from runs.review.reviewing import review
from tests.builders import close, make_compared, make_member, make_run, make_suite, make_trial, score
from tests.runs.review.judged import VERSION, judging

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
    undo_overrule(made, by=ada)
    assert _state(trial) == ("fail", "fail", 0, 1, 0.0, "fail")
    assert trial.scores == FAILED_BY_JUDGE


def test_the_second_to_overrule_is_refused(trial: Trial, ada: Any, project: Any) -> None:
    bob = make_member(project, "runner", "bob")
    overrule(trial, 1, passed=True, reason="Fine.", by=ada)
    with pytest.raises(StaleReview, match="ada overruled this score"):
        overrule(trial, 1, passed=True, reason="Fine too.", by=bob)


def test_undoing_twice_is_refused(trial: Trial, ada: Any) -> None:
    made = overrule(trial, 1, passed=True, reason="Fine.", by=ada)
    undo_overrule(made, by=ada)
    with pytest.raises(StaleReview, match="undone this already"):
        undo_overrule(made, by=ada)


@pytest.mark.parametrize(
    ("position", "reason", "sentence"),
    [(1, " ", "Give a reason"), (7, "Why", "no score at position 7"), (0, "Why", "passed already")],
)
def test_what_cannot_be_overruled(trial: Trial, ada: Any, position: int, reason: str, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        overrule(trial, position, passed=True, reason=reason, by=ada)


JUDGED = [
    score("gates", "file_exists", 1.0, True),
    score("judge", "judge", 0.4, False),
    score("judge", "criterion.task", 0.2, weight=3.0),
    score("judge", "criterion.style", 1.0),
]


@pytest.fixture
def judged(project: Any) -> Trial:
    """Return a trial whose judge reported another score than its criteria give, with a composite."""
    judge = {"rubric": {"criteria": [{"id": "task", "weight": 3}]}, "pass_threshold": 0.7}
    composite = {"gate_weight": 0.5, "judge_weight": 0.5, "interaction_weight": 0}
    criteria = {"judge": judge, "composite": composite}
    version = make_suite(project, ("create",), criteria=criteria)
    run = make_run(version)
    made = make_trial(run, outcome="fail", scores=JUDGED)
    close(run)
    return made


@pytest.mark.parametrize(
    ("position", "value", "judge", "outcome", "composite"),
    [
        (1, 0.9, 0.9, "pass", 0.95),
        (1, 0.5, 0.5, "fail", 0.75),
        (2, 0.6, 0.7, "pass", 0.85),
        (2, 0.0, 0.25, "fail", 0.625),
    ],
)
def test_a_number_replaces_a_score(
    judged: Trial, ada: Any, position: int, value: float, judge: float, outcome: str, composite: float
) -> None:
    made = overrule(judged, position, value=value, reason="It did more.", by=ada)
    judged.refresh_from_db()
    assert judged.scores[position]["value"] == value and judged.outcome == outcome
    assert judged.scores[1]["value"] == pytest.approx(judge)
    assert judged.composite == pytest.approx(composite)
    mean = RunMeasure.objects.get(run=judged.run_id, scenario=None, measure__name="judge").mean
    assert mean == pytest.approx(judge)
    assert made.original == JUDGED[position]
    undo_overrule(made, by=ada)
    judged.refresh_from_db()
    assert judged.scores == JUDGED and judged.outcome == "fail"


def test_an_overruled_judge_keeps_its_number(judged: Trial, ada: Any) -> None:
    first = overrule(judged, 2, value=1.0, reason="It did.", by=ada)
    own = overrule(judged, 1, value=0.1, reason="Worthless.", by=ada)
    judged.refresh_from_db()
    assert judged.scores[1]["value"] == 0.1 and own.original["value"] == 0.4
    undo_overrule(own, by=ada)
    judged.refresh_from_db()
    assert judged.scores[1]["value"] == 1.0 and judged.outcome == "pass"
    undo_overrule(first, by=ada)
    judged.refresh_from_db()
    assert judged.scores == JUDGED


@pytest.mark.parametrize(
    ("position", "given", "sentence"),
    [
        (1, {"value": 1.5}, "outside the rubric's scale"),
        (0, {"value": 0.5}, "has no number"),
        (2, {"passed": True}, "no verdict to overrule. Give it a number"),
        (1, {"value": 0.9, "passed": False}, "reaches the threshold of 0.7"),
        (1, {"value": 0.4}, "already"),
        (1, {}, "Choose a new verdict"),
        (1, {"criterion": "task", "passed": True}, "no yes-or-no criterion 'task'"),
    ],
)
def test_numbers_that_are_refused(judged: Trial, ada: Any, position: int, given: Any, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        overrule(judged, position, reason="Why", by=ada, **given)
    judged.refresh_from_db()
    assert judged.scores == JUDGED


@pytest.fixture
def checked(project: Any) -> Trial:
    """Return a trial that a checklist in a composite failed; one of two statements is satisfied."""
    items = [{"id": "named", "description": "Names it."}, {"id": "short", "description": "Is short."}]
    member = {"type": "rubric", "name": "list", "rubrics": items}
    whole = {"type": "composite", "name": "all", "evaluators": [member]}
    criteria = {"evaluators": [whole], "threshold": 0.8}
    run = make_run(make_suite(project, ("create",), criteria=criteria))
    detail = {"hits": [], "misses": [], "reasoning": "", "verdict": "fail"}
    scores = [
        score("evaluators", "score", 0.5, False, detail={"threshold": 0.8}),
        score("evaluators", "all", 0.5, detail={"type": "composite", **detail}),
        score("evaluators", "all/list", 0.5, detail={"type": "rubric", **detail}),
    ]
    made = make_trial(run, outcome="fail", scores=scores)
    judging(made, passed=False, name="all/list", content={"criteria": {"named": 1.0, "short": 0.0}})
    close(run)
    return made


def test_a_yes_or_no_criterion_is_overruled(checked: Trial, ada: Any, project: Any) -> None:
    before = list(checked.scores)
    made = overrule(checked, 2, criterion="short", passed=True, reason="Ten words.", by=ada)
    checked.refresh_from_db()
    assert [row["value"] for row in checked.scores] == [1.0, 1.0, 1.0] and checked.outcome == "pass"
    assert (made.before, made.given) == ("no", "yes")
    bob = make_member(project, "runner", "bob")
    with pytest.raises(StaleReview, match="ada overruled this score"):
        overrule(checked, 2, criterion="short", passed=False, reason="No.", by=bob)
    undo_overrule(made, by=ada)
    checked.refresh_from_db()
    assert checked.scores == before and checked.outcome == "fail"


def test_an_evaluators_number_changes_the_mean(checked: Trial, ada: Any) -> None:
    overrule(checked, 2, value=0.9, reason="Nearly.", by=ada)
    checked.refresh_from_db()
    assert [row["value"] for row in checked.scores] == [0.9, 0.9, 0.9] and checked.outcome == "pass"


def test_calibration_counts_the_judges_original(judged: Trial, ada: Any, project: Any) -> None:
    one = judging(judged, passed=False)
    overrule(judged, 1, value=0.9, reason="Fine.", by=ada)
    review(one, by=ada, polarity="verdict", position=0, word="agree")
    assert calibration_of(project, VERSION, {}).whole.true_negative.value == 1.0


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
    # Overruling its verdict leaves a judge's score as it is.
    project.smallest_effects = {"judge/judge": 1.0}
    project.save()
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
