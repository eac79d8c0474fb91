"""Who judges, and what is kept of it, with a model over real HTTP."""

from __future__ import annotations

import json

import pytest

from evaluators.model import CompletionError, CompletionRequest, Price, Usage
from runs.engine import lanes, preparation
from runs.engine.judges import make_judge
from runs.models import ModelPrice, Target
from runs.models.run_options import RunOptions
from runs.targets.providers.mock import MockOptions
from runs.targets.providers.options import ResolvedTarget
from tests.builders import make_project, make_suite, make_target
from tests.model_server import Answer, Broken, Failure, serving
from tests.runs.carrying import launch, running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

UNDER_TEST = ResolvedTarget("local", "mock", MockOptions())


@pytest.fixture
def models():
    with serving() as server:
        yield server


def judge_target(project, server, **changes):
    """Return a stored target whose model is at the server."""
    definition = {
        "name": "judge",
        "provider": "litellm",
        "model": "openai/gpt-4o-mini",
        "base_url": f"{server.url}/v1",
        "retry_initial_delay_ms": 1,
        **changes,
    }
    return Target.objects.create(
        project=project, name="judge", provider="litellm", definition=definition, changed_by=None
    )


def ask(run, judge: str, variables=None, **request):
    complete = make_judge(run, UNDER_TEST, RunOptions(judge_model=judge), variables or {})
    return complete(CompletionRequest("Is it good?", "You judge.", **request))


def test_a_target_judges_with_cost_tokens_and_time(models):
    run = running()
    judge_target(run.project, models)
    ModelPrice.objects.create(
        project=run.project,
        model="gpt-4o-mini",
        input_per_million=1,
        output_per_million=2,
        since="2020-01-01",
    )
    answer = ask(run, "judge")
    assert (answer.text, answer.model, answer.usage) == ("Paris.", "openai/gpt-4o-mini", Usage(100, 20))
    assert answer.cost_usd == pytest.approx(140e-6)
    assert answer.price == Price("gpt-4o-mini", 1.0, 2.0, "project", "2020-01-01")
    assert answer.seconds > 0
    assert models.script.seen[0].body["messages"] == [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": "Is it good?"},
    ]


def test_a_price_of_another_project_does_not_count(models):
    run = running()
    judge_target(run.project, models)
    ModelPrice.objects.create(
        project=make_project("others"), model="gpt-4o-mini", input_per_million=900, output_per_million=900
    )
    assert ask(run, "judge").price.source == "litellm"


def test_a_judge_asks_again_and_notes_it(models):
    run = running()
    judge_target(run.project, models)
    models.script.turns = [Failure(429), Broken("closed")]
    notes = ask(run, "judge").notes
    assert [note[:17] for note in notes[:2]] == ["Attempt 1 failed:", "Attempt 2 failed:"]


def test_a_judge_that_fails_says_so(models):
    run = running()
    judge_target(run.project, models)
    models.script.turns = [Failure(401)]
    with pytest.raises(CompletionError, match=r"'judge' did not answer: HTTP 401.*Check the target's key"):
        ask(run, "judge")


def test_a_model_id_judges_with_the_key_that_the_project_may_use():
    with pytest.raises(CompletionError, match=r"'openai/gpt-4o-mini' needs the variable OPENAI_API_KEY"):
        ask(running(), "openai/gpt-4o-mini")


def test_a_model_id_judges_where_its_provider_is(models, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{models.url}/v1")
    answer = ask(running(), "openai/gpt-4o-mini", {"OPENAI_API_KEY": "sk-allowed-here"})
    assert answer.text == "Paris."
    assert models.script.seen[0].headers["authorization"] == "Bearer sk-allowed-here"


COMMAND = {"name": "j", "provider": "cli", "command_template": "cat > prompt; echo Paris."}
RECORDED = {"name": "j", "provider": "replay", "path": "unused", "response": "Paris."}


@pytest.mark.parametrize("judge", [COMMAND, RECORDED], ids=["command", "replay"])
@pytest.mark.parametrize("chosen_by", ["run", "scenario", "target", "project"])
def test_a_command_and_a_recording_judge_wherever_they_are_chosen(judge, chosen_by):
    run = running()
    Target.objects.create(project=run.project, name="j", provider=judge["provider"], definition=judge)
    run.project.judge = "j" if chosen_by == "project" else ""
    options = RunOptions(judge_model="j" if chosen_by == "run" else "")
    target = ResolvedTarget("local", "mock", MockOptions(judge_target="j" if chosen_by == "target" else ""))
    request = CompletionRequest("Is it good?", model="j" if chosen_by == "scenario" else "")
    assert make_judge(run, target, options, {})(request).text.strip() == "Paris."


def test_an_unknown_judge_is_reported_with_a_fix():
    with pytest.raises(CompletionError, match=r"'nobody' is neither a target .* nor a model .*openai/"):
        ask(running(), "nobody")


def test_the_judge_of_a_trial_is_kept_with_its_price_and_what_it_cost(models):
    rubric = {"criteria": [{"id": "good", "weight": 1.0, "description": "Is it good?"}]}
    project = make_project()
    make_target(project)
    judge_target(project, models)
    criteria = {"gates": [], "judge": {"rubric": rubric, "pass_threshold": 0.7}}
    version = make_suite(project, ["create"], criteria=criteria)
    reply = {"scores": {"good": 0.9}, "weighted_score": 0.9, "confidence": 1, "issues": [], "highlights": []}
    models.script.answer = lambda prompt: Answer(json.dumps(reply))
    run = launch(version, targets=["local"], judge_model="judge").runs.get()
    assert preparation.prepare_run(run.pk)
    lanes.run_lane(run.pk)
    trial = run.trial_set.get()
    judging = trial.judgings.get()
    assert (trial.outcome, trial.error) == ("pass", "")
    assert judging.cost_usd == pytest.approx((100 * 0.15 + 20 * 0.6) / 1e6)
    assert judging.content["price"] == {
        "model": "openai/gpt-4o-mini",
        "input_per_million": 0.15,
        "output_per_million": 0.6,
        "cache_read_per_million": 0.075,
        "source": "litellm",
    }
