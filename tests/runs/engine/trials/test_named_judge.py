"""A model server of your own judges the examples: EVALHUB_TEST_JUDGE_URL, such as http://127.0.0.1:11434/v1.

`EVALHUB_TEST_JUDGE_RECORD=replies.yaml` writes down what it answers, as in `tests/files/judge_replies.yaml`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from runs.engine import run_here
from runs.exchange.examples import FOLDER
from runs.launch import inputs
from runs.launch.request import Request, request_runs
from runs.models import Target, Trial
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from scenarios.bundles import read_path
from scenarios.imports import import_files
from tests.builders import make_project
from tests.model_server import Answer, serving

URL = os.environ.get("EVALHUB_TEST_JUDGE_URL", "")
MODEL = os.environ.get("EVALHUB_TEST_JUDGE_MODEL", "small")
RECORD = os.environ.get("EVALHUB_TEST_JUDGE_RECORD", "")
MAX_TOKENS = 400

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not URL, reason="EVALHUB_TEST_JUDGE_URL names no model server."),
]


def asked(body: dict[str, Any]) -> dict[str, Any]:
    """Return the named server's reply: text, why it ended, tokens."""
    reply = httpx.post(f"{URL}/chat/completions", json=body, timeout=600).raise_for_status().json()
    choice, usage = reply["choices"][0], reply["usage"]
    return {
        "text": choice["message"]["content"] or "",
        "finish": choice["finish_reason"],
        "tokens": [usage["prompt_tokens"], usage["completion_tokens"]],
    }


def judged_examples(suite: str, judge: dict[str, Any]) -> list[Trial]:
    """Run a suite of the examples with their scripted agent and this judge, one trial after the other."""
    project = make_project()
    inputs.import_targets_file(project, FOLDER / "targets.yaml", by=None)
    Target.objects.create(project=project, name="named", provider=judge["provider"], definition=judge)
    (imported,) = import_files(read_path(FOLDER / suite), project=project, by=None)
    request = Request(
        [imported.version],
        targets=("scripted-agent",),
        options=RunOptions(judge_model="named", concurrency=1),
    )
    launch = request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)
    run_here.run_here(launch)
    return list(Trial.objects.filter(run__launch=launch, judgings__isnull=False))


@pytest.mark.parametrize("temperature", [0, 0.8])
@pytest.mark.parametrize("suite", ["git-basics", "stock"])
def test_the_model_at_the_named_server_judges(suite, temperature, settings, tmp_path):
    settings.WORK_DIR = tmp_path / "work"
    replies: dict[str, dict[str, Any]] = {}

    def forwarded(prompt: str) -> Answer:
        replies[prompt] = asked(server.script.seen[-1].body)
        return Answer(
            replies[prompt]["text"], usage=tuple(replies[prompt]["tokens"]), finish=replies[prompt]["finish"]
        )

    with serving() as server:
        server.script.answer = forwarded
        judge = {"name": "named", "provider": "litellm", "model": f"openai/{MODEL}"}
        limits = {"temperature": temperature, "max_output_tokens": MAX_TOKENS, "timeout_seconds": 600}
        trials = judged_examples(suite, {**judge, "base_url": f"{server.url}/v1", **limits})
    prompts = list(replies)
    assert trials
    for trial in trials:
        judging = trial.judgings.get()
        position = prompts.index(judging.content["user_prompt"])
        own = [replies[each] for each in prompts[position : position + 1 + judging.content["repaired"]]]
        assert judging.content["raw_answer"] == own[-1]["text"]
        read, written = map(sum, zip(*(each["tokens"] for each in own), strict=True))
        assert (judging.content["usage"]["input"], judging.content["usage"]["output"]) == (read, written)
        if judging.score is None:
            assert len(own) == 2
            assert "unusable, even after one request to correct it" in judging.content["error"]
        else:
            assert 0 <= judging.score <= 1
        if RECORD:
            about = {
                "suite": suite,
                "scenario": trial.scenario_version.scenario.key,
                "temperature": temperature,
            }
            with Path(RECORD).open("a") as file:
                yaml.safe_dump(
                    [{"model": MODEL, **about, "replies": own}], file, sort_keys=False, width=10_000
                )
