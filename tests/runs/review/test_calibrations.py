"""Reviews of verdicts, and the calibration that follows."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.errors import RequestError, StaleReview
from runs.models import JudgeCalibration, JudgingRecord, Resolution, Review, Run, Trial
from runs.review.calibrations import (
    MOST_REPEATED,
    JudgeVersion,
    calibrated_versions,
    calibration_of,
    find_drifts,
    judge_versions,
    repeated_judgings,
)
from runs.review.reviewing import record_who_was_right, review
from tests.builders import close, make_member, make_project, make_run, make_suite, make_trials
from tests.query_plans import query_plan
from tests.runs.review.judged import VERSION, disagreed_trial, judged_trial, judging

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Any) -> Run:
    """Return a closed run with 12 judgings that pass and 4 that fail."""
    made = make_run(make_suite(project, ("create",)))
    for n in range(16):
        judged_trial(made, passed=n < 12)
    return close(made)


def label(by: Any, word: str, *, passed: bool | None = None) -> None:
    """Review the verdict and the first criterion of every judging, or of those with an answer."""
    judgings = JudgingRecord.objects.all() if passed is None else JudgingRecord.objects.filter(passed=passed)
    for one in judgings:
        review(one, by=by, polarity="verdict", position=0, word=word)
        review(one, by=by, polarity="criterion", position=1, word=word)


def test_reviews_of_verdicts_calibrate_the_judge(project: Any, ada: Any, run: Run) -> None:
    project.judge_labels, project.judge_rate = 4, 0.5
    project.save()
    label(ada, "agree")
    found = calibration_of(project, VERSION, repeated_judgings(project))
    assert found.is_calibrated and (found.whole.labels, found.whole.agreement.value) == (16, 1.0)
    assert found.criteria["task"].true_negative.n == 4
    assert VERSION in calibrated_versions(project)
    stored = JudgeCalibration.objects.get()
    assert (stored.passing, stored.failing) == (12, 4)
    assert stored.lower == pytest.approx(found.whole.true_negative.lower)


def test_who_disagrees_gives_the_other_answer(project: Any, ada: Any, run: Run) -> None:
    label(ada, "agree", passed=True)
    label(ada, "disagree", passed=False)
    found = calibration_of(project, VERSION, {})
    assert (found.whole.passing, found.whole.failing) == (16, 0)
    assert found.whole.true_positive.value == found.criteria["task"].true_positive.value == 0.75


def test_missing_labels_are_named(project: Any, ada: Any, run: Run) -> None:
    label(ada, "agree")
    found = calibration_of(project, VERSION, repeated_judgings(project))
    assert found.needs == "18 more passing labels and 26 more failing labels needed."


def test_the_newest_review_counts_and_none_that_is_unclear(project: Any, ada: Any, run: Run) -> None:
    label(ada, "disagree")
    label(make_member(project, "runner", "bob"), "agree", passed=True)
    label(ada, "unclear", passed=False)
    found = calibration_of(project, VERSION, {}).whole
    assert (found.labels, found.agreement.value) == (12, 1.0)


def test_disagreements_are_kept_apart_from_labels(project: Any, ada: Any, run: Run) -> None:
    trial = disagreed_trial(run)
    record_who_was_right(trial, right="judge_fooled", note="", by=ada)
    found = calibration_of(project, VERSION, repeated_judgings(project))
    assert found.whole.labels == 0
    assert (found.among_disagreements.n, found.among_disagreements.value) == (1, 0.0)


def test_disagreements_of_another_project_do_not_count(project: Any, ada: Any, run: Run) -> None:
    record_who_was_right(disagreed_trial(run), right="judge_fooled", note="", by=ada)
    other = make_project("others")
    assert calibration_of(other, VERSION, {}).among_disagreements.n == 0


def test_answers_are_found_without_reading_every_run(project: Any) -> None:
    with CaptureQueriesContext(connection) as asked:
        calibration_of(project, VERSION, repeated_judgings(project))
    statements = {
        table: next(each["sql"] for each in asked if f'FROM "{table}" ' in each["sql"])
        for table in ("runs_review", "runs_resolution", "runs_trial")
    }
    if connection.vendor == "sqlite":
        plans = {table: query_plan(statement) for table, statement in statements.items()}
        assert plans["runs_resolution"][0] == "SCAN runs_resolution"
        assert plans["runs_review"][0].startswith("SCAN runs_review")
        # Sorted by run, so that reading ends with the newest.
        assert "USE TEMP B-TREE FOR ORDER BY" not in plans["runs_trial"]


def test_the_second_resolution_is_refused(project: Any, ada: Any, run: Run) -> None:
    bob = make_member(project, "runner", "bob")
    trial = disagreed_trial(run)
    record_who_was_right(trial, right="both_fine", note="", by=ada)
    with pytest.raises(StaleReview, match="ada resolved"):
        record_who_was_right(trial, right="gate_weak", note="", by=bob)
    record_who_was_right(trial, right="gate_weak", note="I looked again.", by=ada)
    assert Resolution.objects.get().right == "gate_weak"


def test_the_newest_judgings_count(project: Any, run: Run) -> None:
    newer = make_run(run.suite_version)
    make_trials(newer, {"create": ["pass"] * (MOST_REPEATED - 1)})
    judged_trial(newer, passed=True)
    assert repeated_judgings(project).keys() == {Trial.objects.latest("pk").pk}


def test_drift_between_two_judges_on_the_same_trials(project: Any, run: Run) -> None:
    other = JudgeVersion("openai/judge-2", VERSION.rubric)
    for one in JudgingRecord.objects.all():
        judging(one.trial, passed=True, model=other.model, counts=False)
    found = find_drifts(repeated_judgings(project))
    assert [(each.first, each.second, each.trials, each.same) for each in found] == [(VERSION, other, 16, 12)]
    assert found[0].mean_difference == pytest.approx(4 * 0.45 / 16)
    close(run)
    assert judge_versions(project) == [VERSION, other]


def test_a_criterion_can_be_reviewed(project: Any, ada: Any, run: Run) -> None:
    one = JudgingRecord.objects.first()
    assert one is not None
    review(one, by=ada, polarity="criterion", position=1, word="disagree", comment="Too high.")
    assert Review.objects.get().note == "Too high."
    with pytest.raises(RequestError, match="no criterion at position 2"):
        review(one, by=ada, polarity="criterion", position=2, word="agree")
    with pytest.raises(RequestError, match="needs a person"):
        review(one, by=None, polarity="criterion", position=1, word="agree")


def test_closing_a_run_lists_its_judges(project: Any, run: Run) -> None:
    assert JudgeCalibration.objects.get().model == VERSION.model
