"""Trials of coding agents as runs store them: cost, version, and what an early end leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.models import Target, Trial
from runs.models.price import ModelPrice
from scenarios.models import SuiteVersion
from tests.runs.carrying import launch, suite_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

AGENT = """#!/bin/sh
if [ "$*" = --version ]; then echo "{version}"; exit 0; fi
cat > /dev/null
{script}
"""
DONE = """
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1000000,"output_tokens":500000}}'
"""
GATE = {"criteria": {"gates": [{"type": "file_exists", "path": "out.txt"}]}}


def codex(
    project: Project,
    folder: Path,
    script: str,
    *,
    version: str = "codex-cli 0.169.0",
    config: dict[str, Any] | None = None,
    scenario: dict[str, Any] = {},  # noqa: B006 read only
    **fields: Any,
) -> Trial:
    """A finished trial of a program that prints what Codex might."""
    program = folder / "codex"
    program.write_text(AGENT.format(version=version, script=script))
    program.chmod(0o755)
    given = {"name": "coder", "provider": "codex", "executable": str(program), "model": "gpt-9", **fields}
    definition = {"base_url": "http://127.0.0.1:9/v1", **given}
    Target.objects.create(project=project, name="coder", provider="codex", definition=definition)
    limits = {"limits": {"timeout_seconds": 1}} if "sleep" in script else {}
    version = suite_of(project, one={**GATE, **limits, **scenario})
    SuiteVersion.objects.filter(pk=version.pk).update(config=config or {})
    run = launch(version, targets=["coder"]).runs.get()
    run_here.run_here(run.launch)
    return Trial.objects.select_related("run").get()


def test_a_time_limit_before_the_first_output_is_judged(project, tmp_path):
    trial = codex(project, tmp_path, "echo half > out.txt; sleep 60")
    assert (trial.outcome, trial.completed, trial.timed_out) == ("pass", False, True)


def test_an_early_end_shows_standard_error(project, tmp_path):
    trial = codex(project, tmp_path, "echo 'no such model' >&2; exit 2")
    assert trial.outcome == "error"
    assert trial.error.endswith("Standard error: no such model")


@pytest.mark.spec("llm-tool-test", "Cost from tokens and configured rates")
def test_the_project_s_price_makes_the_cost(project, tmp_path):
    ModelPrice.objects.create(
        project=project, model="gpt-9", input_per_million=2.0, output_per_million=8.0, since="2026-01-01"
    )
    trial = codex(project, tmp_path, DONE)
    assert trial.cost_usd == pytest.approx(6.0)
    assert trial.detail["price_source"] == "project gpt-9 2/8"
    assert any("the project's price of gpt-9" in note for note in trial.detail["notes"])


RATES = {"models": {"gpt-9": {"input_cost_per_1k_tokens": 0.001, "output_cost_per_1k_tokens": 0.002}}}


@pytest.mark.spec("llm-tool-test", "Cost from tokens and configured rates")
def test_the_rates_of_the_suite_make_the_cost_of_models_without_a_price(project, tmp_path):
    trial = codex(project, tmp_path, DONE, config=RATES, scenario={"cost": {"max_usd": 1.5}})
    assert trial.cost_usd == pytest.approx(2.0)
    assert trial.detail["price_source"] == "suite gpt-9 1/2"
    assert "The agent cost $2.00, more than the $1.50 that cost.max_usd allows." in trial.detail["notes"]


CACHED = """
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":900000,"output_tokens":0}}'
"""


def test_the_suites_rate_of_the_cache_makes_the_cost(project, tmp_path):
    rates = {**RATES["models"]["gpt-9"], "cache_read_cost_per_1k_tokens": 0.0001}
    trial = codex(project, tmp_path, CACHED, config={"models": {"gpt-9": rates}})
    assert trial.cost_usd == pytest.approx(0.1 * 1 + 0.9 * 0.1)
    assert trial.detail["price_source"] == "suite gpt-9 1/2 cache 0.1/-/-"
    assert not trial.run.cost_notes


def test_the_project_s_price_comes_before_the_rates_of_the_suite(project, tmp_path):
    ModelPrice.objects.create(
        project=project, model="gpt-9", input_per_million=0.0, output_per_million=8.0, since="2026-01-01"
    )
    assert codex(project, tmp_path, DONE, config=RATES).cost_usd == pytest.approx(4.0)


def test_without_a_price_of_the_project_litellm_s_makes_the_cost(project, tmp_path):
    trial = codex(project, tmp_path, DONE, model="gpt-4o-mini")
    assert trial.cost_usd == pytest.approx(0.45)
    assert trial.detail["price_source"] == "litellm gpt-4o-mini 0.15/0.6 cache 0.075/-/-"


def test_without_a_price_the_cost_is_not_measured(project, tmp_path):
    trial = codex(project, tmp_path, DONE)
    assert (trial.cost_usd, trial.tokens_in) == (None, 1_000_000)


@pytest.mark.parametrize(("version", "noted"), [("codex-cli 0.200.1", False), ("codex-cli 2.1.0", True)])
def test_the_version_is_stored_and_a_new_major_noted(project, tmp_path, version, noted):
    trial = codex(project, tmp_path, DONE, version=version)
    assert trial.detail["agent_version"] == version
    assert (
        any("newer than the versions that evalhub knows" in note for note in trial.detail["notes"]) is noted
    )


@pytest.mark.parametrize(
    ("version", "fields", "sentence"),
    [
        ("codex-cli 0.20.0", {}, "npm install -g @openai/codex@latest"),
        ("codex-cli 0.169.0", {"base_url": None}, "is not signed in: agents don't see the worker's logins"),
        ('"; echo broken >&2; exit 1; "', {}, "--version` ended with exit code 1: broken"),
    ],
    ids=["too old", "not signed in", "broken"],
)
def test_an_unusable_agent_costs_no_trial(project, tmp_path, version, fields, sentence):
    trial = codex(project, tmp_path, DONE, version=version, **fields)
    assert (trial.state, trial.starts) == ("cancelled", 0)
    assert sentence in trial.run.error
