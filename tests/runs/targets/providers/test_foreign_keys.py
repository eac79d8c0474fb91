"""No service of litellm is sent a key that the project may not use, whatever the worker's environment has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.targets.language_models.litellm import LitellmOptions
from runs.targets.language_models.model_services import SERVICES
from runs.targets.providers.access import NO_KEY, with_key
from runs.targets.providers.options import ResolvedTarget

pytestmark = [pytest.mark.slow, pytest.mark.one_database]

ROOT = Path(__file__).resolve().parents[4]
IDENTIFIERS = {"OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"}
"""No keys; docs/security.md names them."""
BUILDS_NO_REQUEST = {"predibase", "sap", "vertex_ai", "vertex_ai_beta"}
"""These need libraries or credentials of several values even to build a request."""


@pytest.fixture(scope="module", params=["all", "some"])
def calls(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    program = [sys.executable, "-m", "tests.runs.targets.providers.poisoned_calls", request.param]
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        program, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.starts_first
def test_no_foreign_key_is_sent(calls):
    foreign = {
        (each["service"], each["way"], each["address"], name)
        for each in calls
        for name in {*each["sent"]} - {*each["allowed"]} - IDENTIFIERS
    }
    assert foreign == set()
    assert [each for each in calls if each["connected"]] == []


@pytest.mark.starts_first
def test_every_service_is_sent_the_targets_own_key(calls):
    asked = {each["service"] for each in calls if each["way"] == "own key"}
    sent = {each["service"] for each in calls if each["sends_own"]}
    refused = {each["service"] for each in calls if each["way"] == "own key" and each["refused"]}
    assert asked == set(SERVICES)
    assert asked - sent - refused <= BUILDS_NO_REQUEST
    assert len(sent) > 80


@pytest.mark.starts_first
def test_other_prefixes_are_refused(calls):
    others = [each for each in calls if each["way"] == "other"]
    if not others:
        pytest.skip("called once, with everything poisoned")
    assert {"foo", "github_copilot", "chatgpt", "custom", "vllm"} <= {each["service"] for each in others}
    assert {each["address"] for each in others if each["service"] == "foo"} >= {
        "https://api.groq.com/openai/v1"
    }
    for each in others:
        assert f"the provider '{each['service']}', which evalhub doesn't call" in each["refused"]
        assert each["urls"] == []


def keyed(model: str, variables: dict[str, str]) -> str | None:
    options = LitellmOptions(model=model, base_url="https://models.example/v1")
    return with_key(ResolvedTarget("target", "litellm", options), variables).options.api_key  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("groq/llama", "GROQ_API_KEY"),
        ("scaleway/llama", "SCW_SECRET_KEY"),
        ("together_ai/llama", "TOGETHERAI_API_KEY"),
        ("perplexity/sonar", "PERPLEXITYAI_API_KEY"),
        ("gemini/flash", "GOOGLE_API_KEY"),
    ],
)
def test_a_key_comes_from_the_services_usual_variables(model, variable):
    assert keyed(model, {variable: "sk-1", "OPENAI_API_KEY": "sk-2"}) == "sk-1"
    assert keyed(model, {"OPENAI_API_KEY": "sk-2"}) == NO_KEY


def test_the_documentation_lists_every_provider():
    page = (ROOT / "docs/providers.md").read_text(encoding="utf-8")
    part = page.partition("### Which providers")[2].partition("\n###")[0]
    (paragraph,) = (each for each in part.split("\n\n") if each.startswith("`"))
    listed = {word.strip("`,.") for word in paragraph.split()}
    assert listed == set(SERVICES)
