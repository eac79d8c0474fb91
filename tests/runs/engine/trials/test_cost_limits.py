"""A session with cached tokens against the scenario's cost limit, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.models import ModelPrice, Run, Trial
from tests.builders import make_member, make_project
from tests.commands.calling import Called, call
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

CASE = Path(__file__).parents[3] / "files/cases/05"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
LIMITING_TURN = 4
"""The turn whose cost exceeds 0.10 USD, from 0."""


def session(
    folder: Path, *, max_usd: float, says: str = "", seconds: float = 0.4, seconds_after_limit: float = 0.4
) -> Called:
    """Run the case's session of 12 turns for 0.279 USD, each of so many seconds; its result reports `says` more."""
    program = folder / "fake-claude"
    waits = f"time.sleep({seconds_after_limit} if i >= {LIMITING_TURN} else {seconds})"
    text = (CASE / "fake-claude").read_text().replace("time.sleep(1.2)", waits)
    program.write_text(text.replace("total_cost_usd=cost", f"total_cost_usd=cost{says}"))
    program.chmod(0o755)
    (folder / "scenario.yaml").write_text(
        (CASE / "scenario.yaml").read_text().replace("max_usd: 0.5", f"max_usd: {max_usd}")
    )
    target = {"name": "cl", "provider": "claude_code", "executable": str(program)}
    given = {**target, "model": "claude-sonnet-4-5", "base_url": "http://127.0.0.1:9"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [given]}))
    words = ("--targets", str(folder / "targets.yaml"), "--target", "cl", "--now")
    return call("run_scenarios", str(folder / "scenario.yaml"), *words)


def shown(run: Run, place: str) -> str:
    client = Client()
    client.force_login(make_member(run.project))
    return client.get(f"/p/{run.project.slug}/{place}/").content.decode()


def test_a_session_below_its_limit_ends_by_itself(tmp_path: Path) -> None:
    called = session(tmp_path, max_usd=0.5, seconds=0.02, seconds_after_limit=0.02)
    trial = Trial.objects.get()
    assert (trial.completed, trial.outcome) == (True, "pass")
    assert trial.cost_usd == pytest.approx(0.279, abs=0.0005)
    assert "$0.28" in called.out and "max_usd" not in called.out
    assert trial.detail["usage"] == {
        "cache_read": 720_000,
        "cache_write": 12_000,
        "cache_write_1h": 0,
        "reasoning": 0,
    }
    page = shown(trial.run, f"trials/{trial.pk}")
    assert "720,000 read from cache, 12,000 written to cache" in page
    assert "charged in full" not in page and "The agent reported a cost" not in page


def test_a_session_stops_at_its_limit_and_everything_says_so(tmp_path: Path) -> None:
    called = session(tmp_path, max_usd=0.1, seconds_after_limit=30)
    trial = Trial.objects.get()
    sentence = "The agent was stopped: it cost more than $0.10 (cost.max_usd)."
    # The output tokens of a session that is cut off are unknown, and so is its cost.
    assert (trial.cost_usd, trial.tokens_out, trial.completed) == (None, None, False)
    assert trial.tokens_in
    assert sentence in called.out and "1 trial reached the cost limit (cost.max_usd)." in called.out
    assert sentence in shown(trial.run, f"trials/{trial.pk}")
    assert "1 trial reached the cost limit (cost.max_usd)." in shown(trial.run, f"runs/{trial.run_id}")
    document: dict[str, Any] = call("show_run", str(trial.run_id), "--json").document
    # The session states calls that it never made.
    *contradicted, limited = document["trials"][0]["warnings"]
    assert limited == sentence
    assert all("evalhub's record doesn't have" in each for each in contradicted)
    assert document["trials"][0]["cost"]["limit"] == sentence


def test_a_reported_cost_that_its_tokens_do_not_explain_is_shown(tmp_path: Path) -> None:
    session(tmp_path, max_usd=1, says="*1.2", seconds=0.02, seconds_after_limit=0.02)
    trial = Trial.objects.get()
    assert trial.cost_usd == pytest.approx(0.3346, abs=0.0005)
    assert trial.detail["price_source"] == "reported by the agent"
    sentence = "The agent reported a cost of $0.33; its tokens cost $0.28 by the model&#39;s price."
    assert sentence in shown(trial.run, f"trials/{trial.pk}")
    assert "1 trial where the agent" in shown(trial.run, f"runs/{trial.run_id}")


def test_without_a_rate_of_the_cache_the_limit_counts_it_in_full(tmp_path: Path) -> None:
    project = make_project("default")
    ModelPrice.objects.create(
        project=project, model="claude-sonnet-4-5", input_per_million=3, output_per_million=15
    )
    session(tmp_path, max_usd=0.5)
    trial = Trial.objects.get()
    assert trial.detail["cost_limit"] and trial.cost_usd is None
    assert "it cost more than $0.50" in shown(trial.run, f"trials/{trial.pk}")
