"""Serialise a run and its trials for the command line and REST."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.db.models import QuerySet, Sum
from django.forms.models import model_to_dict

from evaluators.grading.costs import PARTS, TrialCost
from evaluators.grading.evaluator import LAYER as EVALUATORS
from evaluators.grading.judges.rubric import describe_contradiction
from evaluators.grading.scores.weighted_score import NAME as AGGREGATE
from evaluators.redaction import redact_json
from evaluators.transcripts.traces import as_trace, has_trace
from runs.compare.comparison import comparison_of
from runs.compare.looks import look_json, looks_of
from runs.compare.lost_scenarios import change_json, stored_changes
from runs.compare.retests import retest_json, retests_of
from runs.compare.shown_changes import reference_json
from runs.exchange.exports.scenario_classes import run_strips, scenarios_json
from runs.models import JudgingRecord, Run, Trial
from runs.models.trial import TrialState
from runs.results.counting import list_exit_sources, list_rule_versions
from runs.results.failure_reasons import fail_reason
from runs.results.layer_totals import ReadScore, is_vacuous
from runs.results.run_list import release_result
from runs.results.run_rows import listed_runs
from runs.workers.labels import describe_wait

FACTS = (
    "outcome",
    "completed",
    "timed_out",
    "exit_code",
    "seconds",
    "composite",
    "error",
    "error_kind",
)
_CONTENT = (
    "recomputed",
    "criteria",
    "reasons",
    "positives",
    "negatives",
    "reasoning",
    "confidence",
    "mismatch",
    "missing",
)


def run_json(run: Run) -> dict[str, Any]:
    """Return the run without its trials."""
    (listed,) = listed_runs([run.pk])
    changes = comparison_of(run)
    first = run.trial_set.filter(round=0, state=TrialState.FINISHED).order_by()
    integrity = first.values_list("detail__integrity", flat=True)
    return {
        **listed.model_dump(),
        "uuid": str(run.uuid),
        "waits": describe_wait(run) or None,
        "fingerprint": run.fingerprint,
        "warnings": run.warnings,
        "tampered": sum(map(bool, integrity)),
        "cost_notes": run.cost_notes,
        "regressions": list(changes.regressions),
        "new_passes": list(changes.new_passes),
        "added": list(changes.added),
        "removed": list(changes.removed),
        "not_comparable": {key: list(why) for key, why in changes.not_comparable.items()},
        "measures": [change_json(change) for change in stored_changes(run.pk)],
        "compared_with": reference_json(run),
        "looks": [look_json(each) for each in looks_of(run)],
        "retests": [retest_json(each) for each in retests_of(run)],
        "counting": {"rules": list_rule_versions(run.counting), "ends": list_exit_sources(run.counting)},
        "scenarios": scenarios_json(run.suite, run_strips(run), run.retests),
        "release_rule": result.as_json() if (result := release_result(run)) else None,
    }


def trial_json(trial: Trial, judgings: Iterable[JudgingRecord], artifacts: Iterable[str]) -> dict[str, Any]:
    """Return one trial. Expects its scenario to be loaded; texts are redacted."""
    document: dict[str, Any] = redact_json(
        {
            **_identity(trial),
            **result_json(model_to_dict(trial), [model_to_dict(judging) for judging in judgings]),
            "artifacts": sorted(artifacts),
        }
    )
    return document


def result_json(trial: Mapping[str, Any], judgings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a trial's result from its columns and those of its judgings; not redacted."""
    parts = dict.fromkeys(PARTS) | (trial["detail"].get("usage") or {})
    usage = {"input": trial["tokens_in"], "output": trial["tokens_out"], **parts}
    judgings = list(judgings)
    return {
        **_facts(trial),
        "status": status_of(trial["scores"], trial["outcome"]),
        "vacuous": is_vacuous(trial["outcome"], msgspec.convert(trial["scores"], list[ReadScore])),
        "reason": fail_reason(trial["scores"]) if trial["outcome"] == "fail" else "",
        "trace_summary": trial["detail"].get("trace_summary"),
        "interaction": trial["detail"].get("interaction") or {"available": False},
        **_gates_and_scores(trial["scores"]),
        "judgings": [judging_json(judging) for judging in judgings],
        "protected": trial["detail"].get("protected"),
        "diagnosis": trial["detail"].get("diagnosis", []),
        "exposure": trial["detail"].get("exposure"),
        "usage": usage if trial["tokens_in"] is not None else None,
        "cost_usd": trial["cost_usd"],
        "price_source": trial["detail"].get("price_source", ""),
        "cost": _cost_json(trial["detail"]),
        "warnings": [
            *trial["detail"].get("integrity", []),
            *trial["detail"].get("warnings", []),
            *_contradictions(judgings),
            *filter(None, [trial["detail"].get("cost_limit")]),
        ],
        "answer": trial["answer"],
    }


def _contradictions(judgings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return where the total of a judging that counts contradicts its weighted criteria."""
    return [
        f"{describe_contradiction(judging['score'], judging['content']['recomputed'])} The reported score counts."
        for judging in judgings
        if judging["counts"] and judging["content"].get("mismatch") and judging["score"] is not None
    ]


def _cost_json(detail: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how a cost is known; None where it isn't and no limit was reached, and for releases that didn't say."""
    if not detail.get("cost") and not detail.get("cost_limit"):
        return None
    known = msgspec.convert(detail.get("cost") or {}, TrialCost)
    return {
        "limit": detail.get("cost_limit", ""),
        "reported_usd": known.reported,
        "computed_usd": known.computed,
        "differs": known.differs,
        "cached_in_full": bool(known.in_full),
    }


def status_of(scores: Iterable[Mapping[str, Any]], outcome: str) -> str | None:
    """Return the status of AgentV's aggregate, else the outcome; None for a trial without one."""
    named = (score for score in scores if (score["layer"], score["name"]) == (EVALUATORS, AGGREGATE))
    status: str | None = next(named, {}).get("detail", {}).get("status")
    return status or outcome or None


def trial_facts(trial: Trial) -> dict[str, Any]:
    """Return a trial's fields for lists. Expects its scenario to be loaded; not redacted."""
    return {**_identity(trial), **_facts(model_to_dict(trial, FACTS))}


def _identity(trial: Trial) -> dict[str, Any]:
    return {
        "id": trial.pk,
        "scenario": trial.scenario.key,
        "index": trial.index,
        "retest": trial.is_retest,
        "state": trial.state,
    }


def _facts(trial: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: trial[name] for name in FACTS}, "outcome": trial["outcome"] or None}


def _gates_and_scores(scores: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a trial's gates and scores."""
    return {
        "gates": [
            {
                "type": score["name"],
                "passed": score.get("passed"),
                "message": score.get("message", ""),
                "detail": score.get("detail", {}),
            }
            for score in scores
            if score["layer"] == "gates"
        ],
        "scores": [
            {
                "layer": score["layer"],
                "name": score["name"],
                "value": score.get("value"),
                "passed": score.get("passed"),
                "message": score.get("message", ""),
                **({"error": score["error"]} if score.get("error") else {}),
                **({"metrics": metrics} if (metrics := _metrics(score)) is not None else {}),
                **_evaluator(score),
            }
            for score in scores
        ],
    }


def _evaluator(score: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an evaluator of AgentV found beside its score; nothing for other scores."""
    if score["layer"] != EVALUATORS:
        return {}
    detail = score.get("detail", {})
    return {
        "verdict": detail.get("verdict"),
        "hits": detail.get("hits", []),
        "misses": detail.get("misses", []),
        "reasoning": detail.get("reasoning", ""),
    }


def _metrics(score: Mapping[str, Any]) -> Any:
    """Return what an evaluator script reported beside its score; None for other scores."""
    return score.get("detail", {}).get("metrics") if score["layer"] == "scripts" else None


def judging_json(judging: Mapping[str, Any]) -> dict[str, Any]:
    """Return one judge call from its columns, without its prompts."""
    content = judging["content"]
    return {
        "name": judging["name"],
        "score": judging["score"],
        "passed": judging["passed"],
        **{name: content.get(name) for name in _CONTENT},
        "model": judging["model"],
        "cost_usd": judging["cost_usd"],
        "error": content.get("error", ""),
    }


def trace_json(trial: Trial) -> list[dict[str, Any]] | None:
    """Return a trial's trace in AgentV's model; None without one. Not redacted."""
    stored = getattr(trial, "transcript", None)
    transcript = stored.unpack() if stored else None
    return as_trace(transcript.events) if transcript and has_trace(transcript) else None


def run_document(run_id: int, *, traces: bool = False) -> dict[str, Any]:
    """Return a run with all of its trials, in the order of its suite; on request with their traces."""
    run = Run.objects.get(pk=run_id)
    trials = _trials_json(run.trial_set.all())
    if traces:
        for trial, stored_trial in zip(trials, run.trial_set.select_related("transcript"), strict=True):
            trial["trace"] = redact_json(trace_json(stored_trial))
    return {"run": run_json(run), "trials": trials}


def first_trials(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a run document's trials without those of a retest, which no rate counts."""
    return [trial for trial in document["trials"] if not trial.get("retest")]


def run_digest(run_id: int, *, most: int) -> dict[str, Any]:
    """Return a run for its summary: of a large run only the first trials that did not pass."""
    run = Run.objects.get(pk=run_id)
    trials = run.trial_set.all() if run.trials <= most else run.trial_set.exclude(outcome="pass")[:most]
    agents = run.trial_set.aggregate(total=Sum("seconds"))["total"] or 0.0
    return {"run": {**run_json(run), "agent_seconds": agents}, "trials": _trials_json(trials)}


def _trials_json(trials: QuerySet[Trial]) -> list[dict[str, Any]]:
    loaded = trials.select_related("scenario").prefetch_related("judgings", "artifacts")
    return [
        trial_json(trial, trial.judgings.all(), (artifact.name for artifact in trial.artifacts.all()))
        for trial in loaded
    ]
