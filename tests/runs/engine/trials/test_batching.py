"""One batch for all trials of a run, over real HTTP (AgentV evaluation, Provider-level batching flag)."""

from __future__ import annotations

import pytest
import yaml

from runs.engine import batches, lanes, preparation
from runs.models import ProviderBatch, Run, Target
from runs.targets.edits import rewrite
from runs.workers import jobs
from tests.model_server import Answer, serving
from tests.runs.engine.trials.batches import (
    CITIES,
    KEY,
    KINDS,
    answers,
    batch_run,
    carried,
    let_a_look_be_due,
)
from tests.runs.jobs import job_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def models(monkeypatch):
    monkeypatch.setenv("MODEL_KEY", KEY)
    with serving() as server:
        server.script.answer = lambda prompt: Answer(CITIES[prompt])
        yield server


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.spec("agentv", "One batch for all cases, else case by case")
def test_enabled_for_batching_capable_provider(models, kind):
    run = batch_run(models, kind, trials=2)
    assert preparation.prepare_run(run.pk)
    run = carried(run)
    assert (run.state, run.outcome, run.warnings) == ("finished", "pass", [])
    assert answers(run) == {f"{key}-{n}": city for key, city in CITIES.items() for n in range(2)}
    assert len(models.script.batches) == 1
    assert not models.script.requests("/chat/completions") and not models.script.requests("/messages")


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_a_batch_have_tokens_cost_and_price(models, kind):
    run = batch_run(models, kind)
    preparation.prepare_run(run.pk)
    run = carried(run)
    trial = run.trial_set.first()
    assert (trial.tokens_in, trial.tokens_out) == (100, 20)
    assert trial.cost_usd > 0
    assert any("The cost is by litellm's price" in note for note in trial.detail["notes"])


def test_a_batch_costs_what_batches_cost(models):
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    ended = carried(run)
    trial = ended.trial_set.first()
    assert trial.cost_usd == pytest.approx((100 * 0.075 + 20 * 0.3) / 1e6)
    assert ended.price_source == trial.detail["price_source"]
    assert trial.detail["price_source"].startswith("litellm ")


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        pytest.param({"max_output_tokens": 64}, {"max_tokens": 64}, id="as it is"),
        pytest.param(
            {"model": "openai/gpt-5", "max_output_tokens": 64},
            {"max_completion_tokens": 64},
            id="as the model calls it",
        ),
    ],
)
def test_a_request_in_a_batch_is_what_litellm_would_send(models, changes, body):
    run = batch_run(models, **changes)
    preparation.prepare_run(run.pk)
    first = models.script.batches["batch_1"].requests[0]
    model = changes.get("model", "openai/gpt-4o-mini").removeprefix("openai/")
    question = {"messages": [{"role": "user", "content": "france"}]}
    assert first["body"] == {"model": model, **question, **body}
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")


def test_azure_names_its_endpoint_without_a_version(models):
    run = batch_run(models, "azure")
    preparation.prepare_run(run.pk)
    first = models.script.batches["batch_1"].requests[0]
    assert (first["url"], first["body"]["model"]) == ("/chat/completions", "gpt-4o-mini")


@pytest.mark.parametrize("kind", KINDS)
def test_traces_stay_with_their_answers(models, kind):
    models.script.answer = lambda prompt: Answer(CITIES[prompt], calls=(("look_up", {"country": prompt}),))
    run = batch_run(models, kind)
    preparation.prepare_run(run.pk)
    run = carried(run)
    for trial in run.trial_set.select_related("scenario"):
        (event,) = trial.transcript.unpack().events
        assert (event.type, event.name, event.input) == (
            "tool_call",
            "look_up",
            {"country": trial.scenario.key},
        )


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_starts_while_the_batch_is_under_way(models, kind):
    models.script.looks_until_done = 2
    run = batch_run(models, kind)
    preparation.prepare_run(run.pk)
    let_a_look_be_due(run)
    assert not lanes.run_lane(run.pk)
    assert run.trial_set.filter(state="queued").count() == 3
    assert carried(run).state == "finished"


def test_the_batch_is_not_polled_too_early(models):
    models.script.looks_until_done = 9
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    assert not jobs.due_jobs().exists()
    for _ in range(20):
        lanes.run_lane(run.pk)
    assert models.script.batches["batch_1"].looks == 1  # that of handing it in
    let_a_look_be_due(run)
    assert jobs.due_jobs().get() == job_of(run)
    lanes.run_lane(run.pk)
    assert models.script.batches["batch_1"].looks == 2
    assert not jobs.due_jobs().exists()


def test_a_batch_whose_id_is_known_is_never_submitted_again(models):
    run = batch_run(models)
    preparation.prepare_run(run.pk)
    # As if the worker had been lost before the run was let go.
    Run.objects.filter(pk=run.pk).update(state="queued")
    assert preparation.prepare_run(run.pk)
    assert len(models.script.batches) == 1
    assert answers(carried(run)) == {f"{key}-0": city for key, city in CITIES.items()}


def test_a_batch_of_which_nothing_is_known_is_not_submitted_again(models):
    run = batch_run(models)
    ProviderBatch.objects.create(run=run, state="submitting", token="of-a-lost-worker")
    assert preparation.prepare_run(run.pk)
    run = carried(run)
    assert models.script.batches == {}
    assert "whether the provider took it is not known" in run.warnings[0]
    assert len(models.script.requests("/chat/completions")) == 3
    assert run.outcome == "pass"


def test_a_worker_without_the_labels_leaves_a_batch_alone(models, settings):
    run = batch_run(models)
    assert preparation.prepare_run(run.pk)
    labelled = {**run.target.definition, "labels": ["gpu"]}
    rewrite(Target.objects.get(), yaml.safe_dump(labelled), by=None)
    let_a_look_be_due(run)
    assert batches.must_wait(run.pk)
    assert job_of(run).attempts == 0
    settings.WORKER_LABELS = ["gpu"]
    assert carried(run).state == "finished"
