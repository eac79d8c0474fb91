"""Eval cases on targets of other kinds: conversations over stubs, and cases that take too long."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.engine import lanes, preparation
from runs.launch.request import Request, request_runs
from runs.models import Run, Target
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.model_server import Answer, Broken, Failure, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

TOOLS = {"size": 1, "tools": {"get_weather": {"description": "Gives the weather.", "version": "1.0.0",
         "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}}}  # fmt: skip


def carried(case: dict[str, Any], target: dict[str, Any], **options: Any) -> Run:
    """Return the closed run of one eval case on one target."""
    # The embedded project, whose targets may refer to every variable.
    project = make_project("default")
    Target.objects.create(project=project, name="target", provider=target["provider"], definition=target)
    content = json.dumps([{"id": "case-1", "description": "", **case}]).encode()
    (imported,) = import_files(Bundle("evals", {"evals.golden.json": content}), project=project, by=None)
    request = Request([imported.version], options=RunOptions(**options))
    run = request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False).runs.get()
    assert preparation.prepare_run(run.pk)
    lanes.run_lane(run.pk)
    return Run.objects.get(pk=run.pk)


def test_a_model_converses_over_stubs_and_its_last_answer_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-of-the-tests-0123456789")
    with serving() as models:
        models.script.turns = [
            Answer("", calls=(("get_weather", {"city": "Lima"}),)),
            Answer("", calls=(("get_forecast", {"city": "Lima"}),)),
            Answer("It is 17 degrees in Lima."),
        ]
        target = {"name": "target", "provider": "litellm", "model": "openai/gpt-4o-mini", "base_url": f"{models.url}/v1",
                  "api_key": "${{ MODEL_KEY }}"}  # fmt: skip
        case = {
            "input": {"message": "How is the weather in Lima?"},
            "stubs": {"get_weather": {"celsius": 17}},
            "expect": {
                "toolsCalled": ["get_weather", "get_forecast"],
                "responseContains": ["17"],
                "noToolErrors": True,
            },
        }
        run = carried(case, target, registry=TOOLS)
        first, second, _ = models.script.requests("/chat/completions")
    trial = run.trial_set.get()
    assert first.body["tools"][0]["function"]["name"] == "get_weather"
    assert json.loads(second.body["messages"][-1]["content"]) == {"celsius": 17}
    assert trial.answer == "It is 17 degrees in Lima."
    assert trial.detail["tools_called"] == ["get_weather", "get_forecast"]
    # A tool without a stub is what noToolErrors looks for in this mode.
    assert trial.outcome == "fail"
    assert trial.scores[-1]["layer"] in ("assertions", "interaction")
    assert any(score["name"] == "noToolErrors" and score["passed"] is False for score in trial.scores)


def test_a_case_that_takes_too_long_fails_with_the_contracts_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-of-the-tests-0123456789")
    with serving() as models:
        models.script.turns = [Broken("silent", 5)]
        target = {"name": "target", "provider": "litellm", "model": "openai/gpt-4o-mini", "base_url": f"{models.url}/v1",
                  "api_key": "${{ MODEL_KEY }}", "max_retries": 0}  # fmt: skip
        case = {"input": {"message": "hello"}, "expect": {"responseNonEmpty": True}}
        trial = carried(case, target, timeout_seconds=0.5).trial_set.get()
    assert (trial.outcome, trial.timed_out) == ("fail", True)
    assert next(score for score in trial.scores if score["name"] == "verdict")["detail"]["error"] == "timeout"


def test_a_command_that_takes_too_long_fails_the_case_as_well() -> None:
    target = {"name": "target", "provider": "cli", "command_template": "sleep 30"}
    trial = carried(
        {"input": {"message": "hello"}, "expect": {"responseNonEmpty": True}}, target, timeout_seconds=0.5
    ).trial_set.get()
    assert (trial.outcome, trial.timed_out, trial.error) == ("fail", True, "")


@pytest.mark.parametrize("contains", ["17", "18"])
def test_a_service_that_fails_amid_a_conversation_makes_an_error(
    monkeypatch: pytest.MonkeyPatch, contains: str
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-of-the-tests-0123456789")
    with serving() as models:
        call = Answer("It will be 17.", calls=(("get_weather", {"city": "Lima"}),))
        models.script.turns = [call, Failure(429, headers=(("retry-after", "3600"),))]
        target = {"name": "target", "provider": "litellm", "model": "openai/gpt-4o-mini", "base_url": f"{models.url}/v1",
                  "api_key": "${{ MODEL_KEY }}"}  # fmt: skip
        case = {
            "input": {"message": "How is the weather in Lima?"},
            "stubs": {"get_weather": {"celsius": 17}},
            "expect": {"responseContains": [contains]},
        }
        # The first call of a process loads the library, which takes long on a busy machine.
        run = carried(case, target, registry=TOOLS, timeout_seconds=60.0)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "endpoint")
    assert "HTTP 429" in trial.error
    assert trial.seconds is not None and trial.seconds < 60
