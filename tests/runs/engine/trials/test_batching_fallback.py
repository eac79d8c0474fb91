"""What happens where a batch, or a part of it, comes to nothing, over real HTTP (AgentV evaluation, Provider-level batching flag)."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time

import pytest

from runs.engine import batches, lanes, preparation, recording, run_here
from runs.engine.batch_answers import find_batching
from runs.engine.context import load_run
from runs.engine.reaper import reap
from runs.models import BatchAnswer, Job, ProviderBatch, Run
from runs.workers import claims, jobs
from tests.model_server import Answer, Broken, Failure, serving
from tests.runs.carrying import lapse
from tests.runs.engine.trials.batches import (
    CITIES,
    KEY,
    KINDS,
    answers,
    batch_run,
    carried,
    let_a_look_be_due,
    notes,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def models(monkeypatch):
    monkeypatch.setenv("MODEL_KEY", KEY)
    with serving() as server:
        server.script.answer = lambda prompt: Answer(CITIES[prompt])
        yield server


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        pytest.param([Failure(401)], "HTTP 401", id="refused"),
        pytest.param([Failure(503)] * 9, "after 4 attempts: HTTP 503", id="down"),
        pytest.param([Answer(), Broken("closed")], "the connection broke", id="lost on the way"),
    ],
)
def test_a_batch_that_cannot_be_handed_in_falls_back_case_by_case(models, turns, reason):
    models.script.submitting = list(turns)
    run = batch_run(models)
    assert preparation.prepare_run(run.pk)
    run = carried(run)
    (warning,) = run.warnings
    assert warning.startswith("The cases are sent one by one") and reason in warning
    assert answers(run) == {f"{key}-0": city for key, city in CITIES.items()}
    assert all(
        any("Sent as a single request" in note for note in t.detail["notes"]) for t in run.trial_set.all()
    )
    assert models.script.batches == {}


def test_a_refused_batch_is_sent_again(models):
    models.script.submitting = [Failure(503), Answer(), Failure(429), Answer()]
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    assert carried(run).warnings == []
    assert len(models.script.batches) == 1


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_batch_that_fails_falls_back_case_by_case(models, status):
    models.script.batch_status = status
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    run = carried(run)
    (warning,) = run.warnings
    assert f"The batch batch_1 ended as '{status}'" in warning
    assert answers(run) == {f"{key}-0": city for key, city in CITIES.items()}
    assert len(models.script.requests("/chat/completions")) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_cases_that_failed_in_the_batch_are_asked_again(models, kind):
    models.script.batch_errors = frozenset(["spain"])
    run = batch_run(models, kind)
    preparation.prepare_run(run.pk)
    run = carried(run)
    (warning,) = run.warnings
    assert warning.startswith("1 of 3 cases are sent one by one") and "refused" in warning
    assert answers(run) == {f"{key}-0": city for key, city in CITIES.items()}
    single = [*models.script.requests("/chat/completions"), *models.script.requests("/messages")]
    assert len(single) == 1
    assert sum("refused" in note for note in notes(run)) == 1


def test_an_answer_that_is_missing_is_asked_for(models):
    models.script.batch_status = "expired"
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    del models.script.batches["batch_1"].requests[0]
    run = carried(run)
    assert run.warnings == [
        "1 of 3 cases are sent one by one, not in the batch: the batch had no answer for them."
    ]
    assert len(models.script.requests("/chat/completions")) == 1


def test_a_provider_that_is_away_for_a_while_is_asked_later(models):
    run = batch_run(models, max_retries=0)
    preparation.prepare_run(run.pk)
    kept = models.script.batches.pop("batch_1")
    let_a_look_be_due(run)
    lanes.run_lane(run.pk)
    assert run.trial_set.filter(state="queued").count() == 3
    models.script.batches["batch_1"] = kept
    run = carried(run)
    assert (run.state, run.warnings) == ("finished", [])


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.spec("agentv", "A provider without batches warns in verbose runs")
def test_fallback_when_provider_cannot_batch(models, verbose):
    run = batch_run(models, "gemini")
    Run.objects.update(options={**run.options, "verbose": verbose})
    assert preparation.prepare_run(run.pk)
    run = carried(run)
    warned = ["doesn't support batches of the provider 'gemini'" in warning for warning in run.warnings]
    assert (warned, run.outcome) == ([True] if verbose else [], "pass")
    assert not ProviderBatch.objects.exists()


def test_a_target_that_does_not_ask_for_batches_gets_none(models):
    run = batch_run(models, provider_batching=False)
    preparation.prepare_run(run.pk)
    run = carried(run)
    assert (run.outcome, run.warnings, models.script.batches) == ("pass", [], {})


def test_a_cancelled_run_cancels_its_batch(models):
    models.script.looks_until_done = 9
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    recording.cancel_run(run.pk)
    let_a_look_be_due(run)
    assert jobs.due_jobs().get().subject == run.pk
    lanes.run_lane(run.pk)
    assert len(models.script.requests("/cancel")) == 1
    assert ProviderBatch.objects.get(run=run).state == "cancelled"
    assert not Job.objects.exists()


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "in progress"])
def test_a_batch_survives_the_worker_that_handed_it_in(models, ended):
    models.script.looks_until_done = 0 if ended else 1
    run = batch_run(models)
    token = claims.claim_run(run.pk)
    assert token
    batches.submit(load_run(run.pk), token, [])
    lapse(run)
    reap()
    let_a_look_be_due(run)
    batches.must_wait(run.pk)
    assert preparation.prepare_run(run.pk)
    run = carried(run)
    assert (run.state, run.starts, run.warnings) == ("finished", 2, [])
    assert {note for note in notes(run) if "batch" in note} == {"Answered in the run's batch."}
    assert models.script.requests("/cancel") == models.script.requests("/chat/completions") == []


def interrupt_once(script) -> None:
    """Press Ctrl-C as soon as the batch has been looked at."""
    while not any(batch.looks > 1 for batch in list(script.batches.values())):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
def test_ctrl_c_cancels_the_batch(models):
    models.script.looks_until_done = 99
    run = batch_run(models)

    threading.Thread(target=interrupt_once, args=(models.script,), daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_here.run_here(run.launch)
    assert len(models.script.requests("/cancel")) == 1
    run.refresh_from_db()
    assert run.state == "cancelled"


@pytest.mark.slow
def test_a_run_in_this_process_waits_for_its_batch(models):
    models.script.looks_until_done = 1
    run = batch_run(models)
    run_here.run_here(run.launch)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.warnings) == ("finished", "pass", [])
    # Handed in, looked at twice, fetched.
    assert models.script.batches["batch_1"].looks == 4


def test_a_preparation_that_was_thought_lost_takes_its_batch_back(models):
    run = batch_run(models)
    models.script.answer = lambda prompt: Answer(CITIES[prompt])
    context = load_run(run.pk)
    row = ProviderBatch.objects.create(run=run, state="failed", token="mine", detail={"reason": "lost."})
    # Nothing public submits a batch that was thought lost.
    batches._submit(row, find_batching(context.provider), context)  # noqa: SLF001
    assert len(models.script.requests("/cancel")) == 1
    row.refresh_from_db()
    assert (row.state, row.external_id) == ("failed", "")


def test_no_secret_is_kept_of_a_batch(models):
    models.script.answer = lambda prompt: Answer(f"The key is {KEY}.")
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    let_a_look_be_due(run)
    batches.must_wait(run.pk)
    kept = [json.loads(bytes(row.data)) for row in BatchAnswer.objects.all()]
    texts = [text for each in kept for text in (each["answer"], base64.b64decode(each["raw"]).decode())]
    assert texts == ["The key is [REDACTED]."] * 6
    assert all(answer == "The key is [REDACTED]." for answer in answers(carried(run)).values())
