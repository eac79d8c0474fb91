"""Judges whose answers can't be used: one request to correct them, and what they cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from runs.engine import run_here
from runs.models import ModelPrice, Target, Trial
from tests.builders import make_project
from tests.model_server import Answer, serving
from tests.runs.carrying import launch, suite_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
RUBRIC = {
    "name": "r",
    "criteria": [
        {"id": "good", "description": "It is good.", "weight": 0.5},
        {"id": "short", "description": "It is short.", "weight": 0.5},
    ],
}
GIVEN = {"scores": {"good": 0.8, "short": 0.6}, "weighted_score": 0.7, "confidence": 0.9}
USABLE = json.dumps({**GIVEN, "issues": ["It is slow."], "highlights": []})
REPLIES = {
    "talks": ("Overall the agent did well. I would give it 8 out of 10.", "no JSON object"),
    "nothing": ("", "no JSON object"),
    "own scale": (USABLE.replace("0.8", "8").replace("0.6", "6"), "'scores.good' is 8, outside 0 to 1"),
}


RECORDED = yaml.safe_load((Path(__file__).parents[3] / "files" / "judge_replies.yaml").read_text("utf-8"))
UNUSABLE = "The judge's answer was unusable, even after one request to correct it."


def judged(judge: dict[str, object], rubric: dict[str, object] = RUBRIC) -> Trial:
    """Run one trial with this judge, whose tokens cost one or two dollars a million."""
    project = make_project()
    ModelPrice.objects.create(
        project=project, model="small", input_per_million=1, output_per_million=2, since="2020-01-01"
    )
    for name, fields in (("local", {"provider": "mock", "cost_usd": 0.5}), ("judge", judge)):
        definition = {"name": name, **fields}
        Target.objects.create(project=project, name=name, provider=fields["provider"], definition=definition)
    criteria = {"gates": [], "judge": {"rubric": rubric, "model": "judge", "pass_threshold": 0.5}}
    run = launch(suite_of(project, one={"criteria": criteria}), targets=["local"]).runs.get()
    run_here.run_here(run.launch)
    return Trial.objects.select_related("run").get(run=run)


def at(url: str, model: str = "small") -> dict[str, object]:
    return {"provider": "litellm", "model": f"openai/{model}", "base_url": url}


def test_unusable_answers_are_paid_for():
    trial = judged({"provider": "mock", "response": "I like it.", "cost_usd": 0.25})
    assert trial.outcome == "error"
    assert "The judge's answer was unusable" in trial.error
    assert trial.judgings.get().cost_usd == 0.5
    assert trial.run.cost_usd == 1.0


@pytest.mark.parametrize(("reply", "complaint"), REPLIES.values(), ids=REPLIES)
def test_a_small_model_is_asked_to_correct_its_reply(reply, complaint):
    with serving() as server:
        server.script.turns = [Answer(reply), Answer(f"Sorry! Here it is:\n```json\n{USABLE}\n```")]
        trial = judged(at(f"{server.url}/v1"))
        first, second = (seen.body["messages"][-1]["content"] for seen in server.script.seen)
    judging = trial.judgings.get()
    assert (trial.outcome, trial.error) == ("pass", "")
    assert (judging.score, judging.content["repaired"]) == (0.7, True)
    assert complaint in second
    assert reply in second
    assert '"good": <0.0 to 1.0>, "short": <0.0 to 1.0>' in second and first != second


@pytest.mark.parametrize("recorded", RECORDED["recordings"], ids=lambda recorded: recorded["name"])
def test_recorded_replies_of_small_models(recorded):
    replies = [
        Answer(each["text"], (), tuple(each["tokens"]), each["finish"]) for each in recorded["replies"]
    ]
    with serving() as server:
        server.script.turns = list(replies)
        trial = judged(at(f"{server.url}/v1"), RECORDED["rubrics"][recorded["suite"]])
        first, second = (seen.body["messages"][-1]["content"] for seen in server.script.seen)
    assert f"could not be used: {recorded['complaint']}\n" in second
    assert replies[0].text in second
    # A reply without scores isn't a judgement that could be written again.
    assert second.startswith(first) is not recorded["scored"]
    judging = trial.judgings.get()
    assert (judging.score, judging.content["raw_answer"]) == (None, replies[1].text)
    assert (trial.outcome, trial.error) == ("error", f"{UNUSABLE} {recorded['error']}")
    read, written = (sum(reply.usage[side] for reply in replies) for side in (0, 1))
    assert (judging.content["usage"]["input"], judging.content["usage"]["output"]) == (read, written)
    assert judging.cost_usd == pytest.approx((read + 2 * written) / 1e6)
    assert trial.run.cost_usd == pytest.approx(0.5 + judging.cost_usd)
