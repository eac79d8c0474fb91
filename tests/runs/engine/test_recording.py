"""Results are stored once, whatever they hold, and the last one closes the run."""

from __future__ import annotations

import random

import pytest

from evaluators.grading.evaluate import Evaluation
from evaluators.model import Score, Transcript, Usage
from runs.engine import recording
from runs.engine.reaper import reap
from runs.engine.recording import TrialResult
from runs.models import Run, RunMeasure, RunSlot, Trial
from runs.models.trial import SHORT, TranscriptRecord
from runs.workers import claims
from tests.runs.carrying import claimed, launch, passed, running

pytestmark = pytest.mark.django_db
AWKWARD = "a\x00b\ud800c é ✓"
STORED = "a\ufffdb?c é ✓"


def scored(value: float, *, ok: bool) -> Evaluation:
    score = Score("gates", "file_exists", value=value, passed=ok)
    return Evaluation("pass" if ok else "fail", (score,))


def test_the_last_result_closes_the_run_once():
    run = running()
    recording.record_result(claimed(run), passed())
    assert not recording.close_if_done(run.pk)
    recording.record_result(claimed(run), passed(outcome="fail"))
    run.refresh_from_db()
    assert (run.state, run.outcome, run.open) == ("finished", "fail", 0)
    assert not recording.close_if_done(run.pk)


def test_a_result_is_recorded_with_the_next_claim():
    run = running(trials=2)
    first = claimed(run)
    recorded, second = recording.record_and_claim(first, passed())
    assert recorded
    assert second is not None
    assert run.trial_set.get(token=second.token).state == "running"
    assert recording.record_and_claim(first, passed()) == (False, None)
    assert run.trial_set.filter(state="running").count() == 1
    claim, carried = second, 1
    while claim is not None:
        recorded, claim = recording.record_and_claim(claim, passed())
        carried += recorded
    run.refresh_from_db()
    assert (carried, run.passed, run.open, run.state) == (4, 4, 0, "finished")


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [(("pass", "pass"), "pass"), (("pass", "error"), "error"), (("fail", "error"), "fail")],
    ids=["all passed", "an error", "a failure beside an error"],
)
def test_a_runs_outcome_is_its_worst_trials(outcomes, expected):
    run = running()
    for outcome in outcomes:
        recording.record_result(claimed(run), passed(outcome=outcome))
    run.refresh_from_db()
    assert run.outcome == expected


@pytest.mark.parametrize("length", [0, 1, SHORT - 100, SHORT, 100_000])
def test_a_stored_transcript_is_read_as_it_was(length):
    transcript = Transcript(source="transcript", text=random.Random(1).randbytes(length).hex()[:length])
    assert TranscriptRecord(data=TranscriptRecord.pack(transcript)).unpack() == transcript


def test_the_rollups_are_those_done_by_hand():
    run = running(trials=2)
    # Both scenarios once, then both again: the first takes 1 and 3 seconds, the second 2 and 6.
    for seconds in (1.0, 2.0, 3.0, 6.0):
        recording.record_result(claimed(run), passed(seconds, outcome="pass" if seconds < 6 else "fail"))
    rows = RunMeasure.objects.filter(run=run, measure__layer="trial", measure__name="seconds")
    found = {(row.scenario.key if row.scenario else ""): (row.n, row.mean, row.m2) for row in rows}
    # Means 2 and 4; squared differences 1+1 and 4+4; over the means 3, 1+1.
    assert found == {"create": (2, 2.0, 2.0), "export": (2, 4.0, 8.0), "": (2, 3.0, 2.0)}
    rates = RunMeasure.objects.filter(run=run, measure__layer="trial", measure__name="pass")
    assert {(row.scenario.key if row.scenario else ""): (row.mean, row.passed) for row in rates} == {
        "create": (1.0, 2),
        "export": (0.5, 1),
        "": (0.75, 3),
    }


def test_errors_are_not_measured():
    run = running()
    recording.record_result(claimed(run), passed(5.0))
    recording.record_result(claimed(run), passed(100.0, outcome="error"))
    row = RunMeasure.objects.get(run=run, scenario=None, measure__name="seconds")
    assert (row.n, row.mean) == (1, 5.0)


def test_cost_and_tokens_are_summed_and_unknown_cost_is_not_zero():
    run = running()
    recording.record_result(claimed(run), passed(usage=Usage(10, 5)))
    run.refresh_from_db()
    assert (run.cost_usd, run.tokens_in, run.tokens_out) == (None, 10, 5)
    recording.record_result(claimed(run), passed(usage=Usage(1, 2), cost_usd=0.25))
    run.refresh_from_db()
    assert (run.cost_usd, run.tokens_in, run.tokens_out) == (0.25, 11, 7)


def test_what_no_database_holds_is_replaced_and_the_rest_kept():
    run = running()
    claim = claimed(run)
    result = passed(
        answer=AWKWARD,
        error=AWKWARD,
        detail={AWKWARD: [AWKWARD, {"deep": AWKWARD}]},
        evaluation=Evaluation("pass", (Score("gates", "script", passed=True, message=AWKWARD),)),
        transcript=Transcript(text="a\x00b", source="transcript"),
    )
    assert recording.record_result(claim, result)
    trial = Trial.objects.get(pk=claim.trial_id)
    assert (trial.answer, trial.error) == (STORED, STORED)
    assert trial.detail == {STORED: [STORED, {"deep": STORED}]}
    assert trial.scores[0]["message"] == STORED
    assert TranscriptRecord.objects.get(trial=trial).unpack().text == "a\x00b"


def test_a_text_that_only_looks_like_an_escape_is_kept():
    run = running()
    claim = claimed(run)
    recording.record_result(claim, passed(detail={"note": r"\u0000 and \ud800"}))
    assert Trial.objects.get(pk=claim.trial_id).detail == {"note": r"\u0000 and \ud800"}


def test_the_reason_of_a_failed_preparation_may_hold_anything():
    run = running()
    type(run).objects.filter(pk=run.pk).update(state="preparing", token="t")
    assert recording.fail_run(run.pk, "t", f"It said: {AWKWARD}", [])
    run.refresh_from_db()
    assert run.error == f"It said: {STORED}"
    assert (run.state, run.outcome, run.cancelled, run.open) == ("finished", "error", 2, 0)


def test_scores_are_kept_as_evaluate_returned_them():
    run = running()
    claim = claimed(run)
    recording.record_result(claim, passed(evaluation=scored(1.0, ok=True)))
    (score,) = Trial.objects.get(pk=claim.trial_id).scores
    assert (score["layer"], score["name"], score["value"], score["passed"]) == (
        "gates",
        "file_exists",
        1.0,
        True,
    )


def test_a_closed_run_leaves_no_places_behind():
    run = running(trials=1)
    slot = claims.acquire_slot(run, run.target)
    assert slot is not None
    while (claim := claims.claim_trial(run.pk)) is not None:
        assert recording.record_result(claim, passed())
    assert not RunSlot.objects.filter(run=run).exists()
    claims.release_slot(slot)
    assert not RunSlot.objects.exists()


def test_places_of_runs_that_were_closed_before_go_with_the_next_look():
    over, open_ = running(trials=1), running(trials=1)
    Run.objects.filter(pk=over.pk).update(state="finished")
    RunSlot.objects.update(token="left")
    reap()
    assert set(RunSlot.objects.values_list("run", flat=True)) == {open_.pk}


def test_a_run_that_cannot_be_prepared_leaves_no_places_behind():
    run = launch().runs.get()
    token = claims.claim_run(run.pk)
    assert recording.fail_run(run.pk, token or "", "It cannot.", [])
    assert not RunSlot.objects.filter(run=run).exists()


def cannot_start(sentence: str = "The program is missing.", kind: str = "start") -> TrialResult:
    return TrialResult(outcome="error", error=sentence, error_kind=kind)


def test_three_equal_start_errors_cancel_the_rest():
    run = running(trials=5)
    for _ in range(3):
        recording.record_result(claimed(run), cannot_start())
    run.refresh_from_db()
    assert (run.state, run.errors, run.cancelled, run.open) == ("finished", 3, run.trials - 3, 0)
    sentence = "The first 3 trials could not start: The program is missing."
    assert run.warnings == [f"{sentence} {run.trials - 3} trials did not run."]
    assert {each.error for each in run.trial_set.filter(state="cancelled")} == {sentence}


@pytest.mark.parametrize(
    "results",
    [
        [cannot_start(), passed(), cannot_start(), cannot_start()],
        [cannot_start(), cannot_start("Another one."), cannot_start()],
        [cannot_start(kind="endpoint")] * 4,
    ],
    ids=["one passed", "other errors", "no start error"],
)
def test_other_errors_let_the_run_go_on(results):
    run = running(trials=5)
    for result in results:
        recording.record_result(claimed(run), result)
    run.refresh_from_db()
    assert (run.state, run.cancelled) == ("running", 0)


def test_gates_of_one_kind_have_measures_of_their_own():
    run = running()
    names = ("file_exists", "file_exists", "command_succeeds", "file_exists", "file_exists")
    details = ({}, {"name": "report"}, {}, {}, {"name": "report"})
    scores = tuple(
        Score("gates", name, float(n % 2), n % 2 == 1, "", detail)
        for n, (name, detail) in enumerate(zip(names, details, strict=True))
    )
    recording.record_result(claimed(run), passed(evaluation=Evaluation("fail", scores)))
    recording.record_result(claimed(run), passed())
    measured = RunMeasure.objects.filter(run=run, scenario=None, measure__layer="gates")
    assert dict(measured.values_list("measure__name", "mean")) == {
        "file_exists": 0.0,
        "file_exists: report": 1.0,
        "command_succeeds": 0.0,
        "file_exists 3": 1.0,
        "file_exists 4": 0.0,
    }
