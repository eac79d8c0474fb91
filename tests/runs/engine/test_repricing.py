"""Costs of stored trials are computed again, with cached tokens at their price."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.grading.costs import COST_RULES
from evaluators.model import Transcript, Usage
from evaluators.tool_use.interaction import RULES_VERSION
from runs.compare.measure_changes import compare_run_measures
from runs.compare.stored_changes import stored_changes
from runs.engine.stored_trials.repricing import reprice, runs_to_reprice
from runs.models import Artifact, ModelPrice, Run, RunMeasure, TranscriptRecord, Trial
from runs.models.run import Trigger
from runs.models.trial import transcript_row
from runs.results.comparability import changed_parts
from runs.results.files.artifacts import keep_content
from tests.builders import close, make_project, make_run, make_suite, make_target, make_trial
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
OLD_SOURCE = "project m 10/20"
CODEX = {"input_tokens": 1_000_000, "cached_input_tokens": 900_000, "output_tokens": 50_000}
OLD_COST = (1_000_000 * 10 + 50_000 * 20) / 1e6
NEW_COST = (100_000 * 10 + 900_000 * 1 + 50_000 * 20) / 1e6


def price(run: Run, **rates: Any) -> None:
    ModelPrice.objects.create(
        project=run.project,
        model="m",
        input_per_million=10,
        output_per_million=20,
        since="2020-01-01",
        **{"cache_read_per_million": 1.0, **rates},
    )


def raw_codex(usage: dict[str, int] = CODEX) -> bytes:
    message = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "Done."}}
    return b"\n".join(
        json.dumps(line).encode() for line in (message, {"type": "turn.completed", "usage": usage})
    )


def old_run(*raws: bytes | None, provider: str = "codex", source: str = OLD_SOURCE, **about: Any) -> Run:
    """Return a closed run of a release that charged cached tokens in full, with a trial for each raw output."""
    project = about.pop("project", None) or make_project()
    version = about.pop("version", None) or make_suite(project, ("create",))
    target = about.pop("target", None) or make_target(project, provider=provider)
    run = make_run(version, target=target, model="m", **about)
    for raw in raws:
        detail = {"price_source": source} if source else {}
        tokens = {"tokens_in": 1_000_000, "tokens_out": 50_000}
        trial = make_trial(run, cost_usd=OLD_COST, detail=detail, completed=True, **tokens)
        row = transcript_row(trial.pk, Transcript(usage=Usage(1_000_000, 50_000)))
        TranscriptRecord.objects.create(trial=trial, **{k: v for k, v in row.items() if k != "trial"})
        if raw is not None:
            kept = keep_content("transcript", raw)
            Artifact.objects.create(trial=trial, name="transcript", sha256=kept.sha256, size=kept.size)
    close(run)
    sums = {"tokens_in": 1_000_000 * len(raws), "tokens_out": 50_000 * len(raws)}
    Run.objects.filter(pk=run.pk).update(repriced=0, cost_usd=OLD_COST * len(raws) + 0.5, **sums)
    run.refresh_from_db()
    return run


def stored() -> Any:
    return (
        list(Trial.objects.order_by("pk").values("cost_usd", "tokens_in", "tokens_out", "detail", "outcome")),
        list(
            Run.objects.order_by("pk").values(
                "cost_usd", "tokens_in", "price_source", "cost_notes", "repriced"
            )
        ),
        list(RunMeasure.objects.order_by("run", "measure", "scenario").values("run", "measure", "n", "mean")),
    )


def test_raw_output_gives_the_cost_of_cached_tokens() -> None:
    run = old_run(raw_codex())
    price(run)
    done = reprice()
    assert (done.runs, done.trials, done.kept) == (1, 1, 0)
    trial = run.trial_set.get()
    assert trial.cost_usd == pytest.approx(NEW_COST)
    assert trial.detail["price_source"] == "project m 10/20 cache 1/-/-"
    assert trial.detail["usage"]["cache_read"] == 900_000
    assert trial.transcript.unpack().usage == Usage(1_000_000, 50_000, cache_read=900_000)
    run.refresh_from_db()
    # Judges cost half a dollar, which stays.
    assert run.cost_usd == pytest.approx(NEW_COST + 0.5)
    assert run.price_source == "project m 10/20 cache 1/-/-" and run.cost_notes == []
    cost = RunMeasure.objects.get(run=run, scenario=None, measure__layer="trial", measure__name="cost_usd")
    assert cost.mean == pytest.approx(NEW_COST)


def test_a_second_time_changes_nothing() -> None:
    price(old_run(raw_codex(), None))
    reprice()
    before = stored()
    assert not runs_to_reprice().exists()
    assert reprice().trials == 0 and stored() == before


@pytest.mark.parametrize("after", ["a batch", "all batches", "the run"])
def test_an_interrupted_recomputation_goes_on_and_ends_alike(after: str) -> None:
    run = old_run(raw_codex(), raw_codex(), None)
    price(run)
    stops = {
        "a batch": {"batch_done": _interrupt, "batch": 1},
        "all batches": {"batch_done": _interrupt, "batch": 3},
        "the run": {"progress": lambda done, of: _interrupt()},
    }
    with pytest.raises(KeyboardInterrupt):
        reprice(**stops[after])  # type: ignore[arg-type]
    reprice()
    run.refresh_from_db()
    assert run.cost_usd == pytest.approx(2 * NEW_COST + OLD_COST + 0.5)
    cost = RunMeasure.objects.get(run=run, scenario=None, measure__layer="trial", measure__name="cost_usd")
    assert cost.mean == pytest.approx((2 * NEW_COST + OLD_COST) / 3)
    assert run.repriced == COST_RULES and "cached tokens in full" in run.price_source


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_a_trial_without_output_keeps_its_cost_and_is_not_compared() -> None:
    before = old_run(None)
    price(before)
    assert reprice().kept == 1
    before.refresh_from_db()
    trial = before.trial_set.get()
    assert trial.cost_usd == OLD_COST
    assert trial.detail["price_source"] == f"{OLD_SOURCE}, cached tokens in full"
    [note] = before.cost_notes
    assert note.startswith("1 trial with cached tokens charged in full: the stored trials don't say")
    after = make_run(before.suite_version, target=before.target, model="m")
    make_trial(after, cost_usd=1.0, detail={"price_source": OLD_SOURCE})
    close(after)
    assert changed_parts(before, after) == {"create": ("prices",)}
    compared = compare_run_measures(before, after)
    measured = {each.rule.name for each in (*compared.headline, *compared.others) if each.scenarios}
    assert "trial/cost_usd" not in measured and "trial/pass" in measured


def test_comparisons_follow_the_new_costs() -> None:
    before = old_run(raw_codex({**CODEX, "cached_input_tokens": 0}))
    price(before)
    after = old_run(
        raw_codex(),
        project=before.project,
        version=before.suite_version,
        target=before.target,
        baseline=before,
    )
    assert reprice().compared == 1
    [cost] = [each for each in stored_changes(after.pk) if each.rule.name == "trial/cost_usd"]
    assert (cost.before, cost.after) == (pytest.approx(OLD_COST), pytest.approx(NEW_COST))


def test_an_agents_own_cost_stays() -> None:
    result = {"type": "result", "total_cost_usd": 3.0, "usage": {"input_tokens": 100_000, "cache_read_input_tokens": 900_000, "output_tokens": 50_000}}  # fmt: skip
    run = old_run(json.dumps(result).encode(), provider="claude_code", source="")
    Trial.objects.update(cost_usd=3.0)
    price(run)
    reprice()
    trial = run.trial_set.get()
    assert trial.cost_usd == 3.0
    assert trial.detail["price_source"] == "reported by the agent"
    assert trial.detail["cost"]["computed"] == pytest.approx(NEW_COST)
    run.refresh_from_db()
    assert run.cost_notes == []


def test_a_session_that_was_cut_keeps_its_cost_because_its_output_tokens_are_unknown() -> None:
    usage = {"input_tokens": 100_000, "cache_read_input_tokens": 900_000, "output_tokens": 50_000}
    message = {"id": "m", "model": "m", "content": [{"type": "text", "text": "hi"}], "usage": usage}
    run = old_run(json.dumps({"type": "assistant", "message": message}).encode(), provider="claude_code")
    price(run)
    reprice()
    trial = run.trial_set.get()
    assert trial.cost_usd == pytest.approx(OLD_COST) and trial.detail["cost"]["in_full"]


@pytest.mark.parametrize(
    ("source", "kept", "now"),
    [
        pytest.param("project m 10/20", 1, "project m 10/20, cached tokens in full", id="the project's price"),
        pytest.param(
            "litellm openai/gpt-4o-mini 0.15/0.6", 0, "litellm openai/gpt-4o-mini 0.15/0.6 cache 0.075/-/-", id="litellm's price"
        ),
        pytest.param("litellm openai/gpt-4o-mini 7/8", 0, "litellm openai/gpt-4o-mini 7/8", id="another price"),
        pytest.param("", 0, None, id="unknown"),
    ],
)  # fmt: skip
def test_a_models_answers_cost_was_right_by_litellms_price_alone(
    source: str, kept: int, now: str | None
) -> None:
    run = old_run(b"Paris.", provider="litellm", source=source)
    assert reprice().kept == kept
    trial = run.trial_set.get()
    assert (trial.cost_usd, trial.detail.get("price_source")) == (OLD_COST, now)


def test_an_endpoints_answer_is_read_again() -> None:
    usage = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 50_000,
        "prompt_tokens_details": {"cached_tokens": 900_000},
    }
    run = old_run(json.dumps({"response": "hi", "usage": usage}).encode(), provider="http")
    price(run)
    reprice()
    assert run.trial_set.get().cost_usd == pytest.approx(NEW_COST)


def test_prices_are_those_of_the_trials_day() -> None:
    run = old_run(raw_codex())
    price(run)
    price_of_later = {"input_per_million": 99, "output_per_million": 99, "since": "2999-01-01"}
    ModelPrice.objects.create(project=run.project, model="m", **price_of_later)
    reprice()
    assert run.trial_set.get().cost_usd == pytest.approx(NEW_COST)


def test_imported_results_keep_their_costs() -> None:
    run = old_run(raw_codex(), trigger=Trigger.IMPORT)
    price(run)
    assert (reprice().trials, run.trial_set.get().cost_usd) == (0, OLD_COST)
    run.refresh_from_db()
    assert (run.tokens_in, run.tokens_out) == (1_000_000, 50_000)


def test_the_command_says_what_it_did() -> None:
    price(old_run(raw_codex(), None))
    done = call("recompute")
    assert "Computed the costs of 1 trial of 1 run again by rules 2, and compared 0 runs again." in done.out
    assert "1 trial had no stored output to compute from. Their costs stay" in done.out
    assert "Computing costs again: 1 of 1 run." in done.err
    again = call("recompute")
    assert again.out.splitlines() == [
        f"Every run is counted by rules {RULES_VERSION}.",
        "Every cost is by rules 2.",
    ]
    assert call("recompute", "--json").document["costs"] == {"rules": 2, "runs": 0, "trials": 0, "kept": 0, "compared": 0}  # fmt: skip
