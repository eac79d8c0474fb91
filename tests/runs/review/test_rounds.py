"""Review rounds: drawing, labelling, and the calibration that follows."""

from __future__ import annotations

from random import Random
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
    drifts,
    judge_versions,
    repeated_judgings,
)
from runs.review.review_rounds import assign, decide_item, draw, next_item, rounds_of
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


def label(made: Any, by: Any, answer: Any) -> None:
    for item in made.items.all():
        decide_item(item, passed=answer(item), criteria={"task": answer(item)}, note="", by=by)


def test_a_round_draws_at_random_with_weights(project: Any, ada: Any, run: Run) -> None:
    made = draw(project, VERSION, 8, by=ada, is_stratified=True, chance=Random(1))
    weights = {(item.judge_passed, item.weight) for item in made.items.all()}
    assert weights == {(True, 3.0), (False, 1.0)} and made.items.count() == 8
    again = draw(project, VERSION, 50, by=ada)
    assert again.items.count() == 8, "what a round has drawn is not drawn again"
    with pytest.raises(RequestError, match="No unlabelled judgings"):
        draw(project, VERSION, 1, by=ada)


def test_labels_calibrate_the_judge(project: Any, ada: Any, run: Run) -> None:
    project.judge_labels, project.judge_rate = 4, 0.5
    project.save()
    made = draw(project, VERSION, 16, by=ada)
    label(made, ada, lambda item: item.judge_passed)
    found = calibration_of(project, VERSION, repeated_judgings(project))
    assert found.is_calibrated and found.whole.agreement.value == 1.0
    assert found.criteria["task"].true_negative.n == 4
    assert VERSION in calibrated_versions(project)
    assert rounds_of(project).get().done == 16


def test_halves_of_each_answer_weigh_by_their_size(project: Any, ada: Any, run: Run) -> None:
    label(draw(project, VERSION, 8, by=ada, is_stratified=True), ada, lambda item: item.judge_passed)
    found = calibration_of(project, VERSION, {}).whole
    # None of 4 passes was false, of 12: as many as the 4 fails could be.
    assert found.true_negative.value == 1.0 and found.true_negative.lower < 0.45
    stored = JudgeCalibration.objects.get()
    assert stored.lower == pytest.approx(min(found.true_negative.lower, found.true_positive.lower))


def test_judged_pass_rates_are_corrected(project: Any, ada: Any, run: Run) -> None:
    made = draw(project, VERSION, 16, by=ada)
    (before,) = calibration_of(project, VERSION, {}).runs
    assert (before.run, before.passed, before.judged, before.corrected) == (run.pk, 12, 16, None)
    # People fail 2 of the 12 that the judge passed.
    wrong = [item.pk for item in made.items.filter(judge_passed=True)[:2]]
    label(made, ada, lambda item: item.judge_passed and item.pk not in wrong)
    found = calibration_of(project, VERSION, {}).runs[0]
    assert found.rate.value == 0.75 and found.corrected is not None
    assert found.corrected.value == pytest.approx(10 / 16)
    assert found.corrected.lower < found.rate.lower


def test_missing_labels_are_named(project: Any, ada: Any, run: Run) -> None:
    label(draw(project, VERSION, 16, by=ada), ada, lambda item: item.judge_passed)
    found = calibration_of(project, VERSION, repeated_judgings(project))
    assert found.needs == "18 more passing labels and 26 more failing labels needed."


def test_an_unclear_label_does_not_count(project: Any, ada: Any, run: Run) -> None:
    label(draw(project, VERSION, 16, by=ada), ada, lambda item: None)
    assert calibration_of(project, VERSION, {}).whole.labels == 0


def test_the_second_label_is_refused(project: Any, ada: Any, run: Run) -> None:
    bob = make_member(project, "runner", "bob")
    item = draw(project, VERSION, 1, by=ada).items.get()
    decide_item(item, passed=True, criteria={}, note="", by=ada)
    with pytest.raises(StaleReview, match="ada decided item 1 of this round first"):
        decide_item(item, passed=False, criteria={}, note="", by=bob)
    item.refresh_from_db()
    assert item.passed is True


def test_only_one_person_takes_an_item(project: Any, ada: Any, run: Run) -> None:
    bob = make_member(project, "runner", "bob")
    made = draw(project, VERSION, 2, by=ada)
    item = next_item(made, ada)
    assert item is not None
    assign(item, ada, seen=None)
    with pytest.raises(StaleReview, match="in the meantime"):
        assign(item, bob, seen=None)
    theirs = next_item(made, bob)
    assert theirs is not None and theirs.pk != item.pk


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


def test_disagreements_are_found_without_reading_every_run(project: Any) -> None:
    with CaptureQueriesContext(connection) as asked:
        calibration_of(project, VERSION, {})
    [statement] = [each["sql"] for each in asked if 'FROM "runs_resolution"' in each["sql"]]
    assert 'FROM "runs_resolution" WHERE' in statement
    if connection.vendor == "sqlite":
        assert query_plan(statement)[0] == "SCAN runs_resolution"


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
    found = drifts(repeated_judgings(project))
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
