"""Eval cases without stubs on a model: it is asked once, and the tools that it would call are judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from runs.engine import preparation
from runs.launch.inputs import registry_from
from runs.launch.request import Request, request_runs
from runs.models import Run, Target
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.model_server import Answer, ModelServer, serving
from tests.runs.engine.trials.batches import KEY, KINDS, carried, definition

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

TOOLS = {
    "size": 2,
    "tools": {
        "get_weather": {
            "description": "Gives the weather.",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
        "get_time": {"description": "Gives the time."},
    },
}
WEATHER, JOKE = "How is the weather in Lima?", "Tell a joke."
CASES = [
    {
        "id": "weather",
        "description": "",
        "input": {"message": WEATHER},
        "expect": {
            "toolsCalled": ["get_weather"],
            "toolParams": [
                {"tool": "get_weather", "paramName": "city", "assertion": "equals", "value": "Lima"}
            ],
        },
    },
    {
        "id": "joke",
        "description": "",
        "input": {"message": JOKE},
        "expect": {"toolsAcceptable": [["__none__"]]},
    },
]
ANSWERS = {
    WEATHER: Answer("", calls=(("get_weather", {"city": "Lima"}),)),
    JOKE: Answer("Why?", calls=(("get_time", {}),)),
}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("MODEL_KEY", KEY)
    with serving() as server:
        server.script.answer = ANSWERS.__getitem__
        yield server


def requested(models: ModelServer, kind: str, cases: list[dict[str, Any]] = CASES, **changes: Any) -> Run:
    options = changes.pop("options", {"registry": TOOLS})
    project = make_project("default")
    fields = {**definition(models, kind), **changes}
    Target.objects.create(project=project, name="model", provider=kind, definition=fields)
    content = json.dumps(cases).encode()
    (imported,) = import_files(Bundle("evals", {"evals.golden.json": content}), project=project, by=None)
    request = Request([imported.version], options=RunOptions(**options))
    return request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False).runs.get()


def offered(models: ModelServer) -> list[str]:
    """Return the tools of each request, as it was sent."""
    script = models.script
    batched = [
        each.get("body") or each["params"] for batch in script.batches.values() for each in batch.requests
    ]
    asked = batched or [seen.body for seen in script.seen if {"messages", "contents"} & set(seen.body or ())]
    return [json.dumps(body.get("tools")) for body in asked]


@pytest.mark.parametrize("batching", [False, True], ids=["one by one", "in a batch"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_offered_the_tools_of_the_registry(models, kind, batching):
    run = requested(models, kind, provider_batching=batching)
    assert preparation.prepare_run(run.pk)
    run = carried(run)
    assert bool(models.script.batches) is batching
    assert [("get_weather" in tools, "get_time" in tools) for tools in offered(models)] == [(True, True)] * 2
    trials = {trial.scenario.key: trial for trial in run.trial_set.select_related("scenario")}
    assert {key: trial.detail["tools_called"] for key, trial in trials.items()} == {
        "weather": ["get_weather"],
        "joke": ["get_time"],
    }
    # A tool where none is wanted fails: without any offered that case passed whatever the model knew.
    assert {key: trial.outcome for key, trial in trials.items()} == {"weather": "pass", "joke": "fail"}


def test_a_run_says_what_of_its_registry_could_not_be_read(models):
    listed = [{"name": "get_time", "description": each} for each in ("Old.", "Gives the time.")]
    registry = registry_from([*listed, {"description": "Gives the weather."}], "tools")
    run = requested(models, KINDS[0], options={"registry": registry})
    assert preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert run.warnings == [
        "tools: The registry defines the tool get_time more than once; the last definition is used.",
        "tools: Entry 3 has no name and was left out.",
    ]


def test_gemini_is_offered_the_tools_as_well(models):
    run = requested(models, "gemini")
    assert preparation.prepare_run(run.pk)
    assert {trial.outcome for trial in carried(run).trial_set.all()} == {"pass", "fail"}
    assert [("get_weather" in tools, "get_time" in tools) for tools in offered(models)] == [(True, True)] * 2


@pytest.mark.parametrize("options", [{}, {"registry": {"size": 0, "tools": {}}}], ids=["none", "empty"])
def test_a_run_without_registry_is_refused_with_a_fix(models, options):
    run = requested(models, "litellm", options=options)
    assert not preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.outcome) == ("finished", "error")
    assert "2 of its cases expect calls (weather, joke). Give the registry with --tool-registry" in run.error
    assert models.script.requests("/chat/completions") == []


@pytest.mark.parametrize(
    ("kind", "fields", "error"),
    [
        ("http", {"url": "http://127.0.0.1:9/"}, "1 case with stubs would be run without them (joke)"),
        ("cli", {"command_template": "true"}, "(cli) can't take stubs"),
        ("mock", {}, ""),
    ],
)
def test_stubs_that_a_target_cannot_take_are_refused(models, kind, fields, error):
    case = {"id": "joke", "description": "", "input": {"message": JOKE}, "stubs": {"get_time": 7}}
    case["expect"] = {"responseNonEmpty": True}
    project = make_project("default")
    Target.objects.create(
        project=project, name="t", provider=kind, definition={"name": "t", "provider": kind, **fields}
    )
    content = json.dumps([case]).encode()
    (imported,) = import_files(Bundle("evals", {"evals.golden.json": content}), project=project, by=None)
    run = request_runs(
        project, Request([imported.version]), by=None, trigger=Trigger.CLI, wake=False
    ).runs.get()
    assert preparation.prepare_run(run.pk) is not bool(error)
    run.refresh_from_db()
    assert error in run.error


def test_a_case_that_names_no_tool_needs_no_registry(models):
    case = {"id": "joke", "description": "", "input": {"message": JOKE}, "expect": {"responseNonEmpty": True}}
    run = requested(models, "litellm", [case], options={})
    assert preparation.prepare_run(run.pk)
    assert [trial.outcome for trial in carried(run).trial_set.all()] == ["pass"]
