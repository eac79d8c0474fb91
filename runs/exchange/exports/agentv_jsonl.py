"""Export a run of any format as AgentV's JSONL results, one record per trial."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evaluators.grading.judges.rubric_judge import NAME as JUDGE
from evaluators.grading.scores.weighted_score import NAME as AGGREGATE
from evaluators.model import Json
from evaluators.redaction import redact_json
from evaluators.transcripts.traces import trace_summary
from runs.exchange.exports.document import status_of
from runs.models import JudgingRecord, Run, Trial
from runs.models.trial import TrialState

AGENT_KINDS = frozenset(
    (
        "cli",
        "codex",
        "claude_code",
        "opencode",
        "gemini_cli",
        "qwen_code",
        "copilot_cli",
        "vscode",
        "vscode-insiders",
    )
)
"""Providers whose request belongs in `agent_provider_request`."""


def jsonl(run: Run) -> Iterator[str]:
    """Yield a line for each finished first trial, in the order of the suite. Secrets are redacted."""
    trials = run.trial_set.filter(round=0, state=TrialState.FINISHED)
    trials = trials.select_related("scenario", "scenario_version")
    for trial in trials.prefetch_related("judgings", "transcript"):
        yield json.dumps(redact_json(trial_record(run, trial)), ensure_ascii=False) + "\n"


def trial_record(run: Run, trial: Trial) -> dict[str, Json]:
    """Return one trial's record; keys without a value are left out."""
    content = trial.scenario_version.content
    aggregate = _score(trial.scores, "evaluators", AGGREGATE)
    detail = aggregate.get("detail", {})
    judgings = {judging.name: judging for judging in trial.judgings.all()}
    fields: dict[str, Json] = {
        "timestamp": trial.finished.isoformat().replace("+00:00", "Z") if trial.finished else None,
        "eval_id": trial.scenario.key,
        "dataset": run.suite.name,
        "conversation_id": content.get("conversation") or None,
        "score": _value(trial, aggregate),
        "status": status_of(trial.scores, trial.outcome),
        "hits": detail.get("hits", []),
        "misses": detail.get("misses", []),
        "candidate_answer": trial.answer,
        "target": run.target.name,
        "reasoning": detail.get("reasoning") or None,
        _request_name(run): _request(content),
        "evaluator_results": _evaluator_results(trial.scores, judgings) or None,
        "error": trial.error or None,
        "trace_summary": _trace_summary(trial),
        "trial": trial.index if run.trials > 1 and trial.index else None,
        # Not AgentV's fields: an import needs the threshold and the times; costs are in US dollars.
        "cost_usd": trial.cost_usd,
        "price_source": trial.detail.get("price_source") or None,
        "outcome": trial.outcome,
        "seconds": trial.seconds,
        # By these, an import knows the run and compares it with later ones.
        "run_id": run.shown_id,
        "model": run.model or None,
        "suite_format": run.suite.format,
        "suite_hash": run.suite_version.sha256,
        "scenario_hash": trial.scenario_version.sha256,
        "guidance_hash": run.guidance.sha256 if run.guidance else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _value(trial: Trial, aggregate: Mapping[str, Any]) -> float:
    """Return the aggregate score; for other suites, 1 for a pass and 0 otherwise."""
    value = aggregate.get("value")
    return float(trial.outcome == "pass") if value is None and not aggregate else float(value or 0.0)


def _score(scores: Iterable[Mapping[str, Any]], layer: str, name: str) -> Mapping[str, Any]:
    return next((score for score in scores if (score["layer"], score["name"]) == (layer, name)), {})


def _request_name(run: Run) -> str:
    return "agent_provider_request" if run.target.provider in AGENT_KINDS else "lm_provider_request"


def _request(content: Mapping[str, Any]) -> dict[str, Json]:
    criteria = content.get("criteria", {})
    return {"question": content.get("prompt", ""), "guideline_paths": list(criteria.get("guidelines", []))}


def _evaluator_results(
    scores: Iterable[Mapping[str, Any]], judgings: Mapping[str, JudgingRecord]
) -> list[dict[str, Json]]:
    """Return each evaluator's result; other deciding scores count as evaluators too."""
    rows = [
        score
        for score in scores
        if (score["layer"] == "evaluators" and score["name"] != AGGREGATE)
        or score["layer"] in ("gates", "assertions")
        or (score["layer"], score["name"]) == ("judge", JUDGE)
    ]
    return [_evaluator_result(score, judgings.get(score["name"])) for score in rows]


def _evaluator_result(score: Mapping[str, Any], judging: JudgingRecord | None) -> dict[str, Json]:
    detail = score.get("detail", {})
    value = score.get("value")
    fields: dict[str, Json] = {
        "name": score["name"],
        "type": detail.get("type") or score["layer"],
        "score": 0.0 if value is None else value,
        "weight": score.get("weight"),
        "verdict": detail.get("verdict"),
        "hits": detail.get("hits", []),
        "misses": detail.get("misses", _misses(score)),
        "reasoning": detail.get("reasoning") or None,
        "evaluator_provider_request": _prompts(judging),
        "error": score.get("error") or None,
    }
    return {name: item for name, item in fields.items() if item is not None}


def _prompts(judging: JudgingRecord | None) -> dict[str, Json] | None:
    if judging is None:
        return None
    content = judging.content
    return {"userPrompt": content.get("user_prompt", ""), "systemPrompt": content.get("system_prompt", "")}


def _trace_summary(trial: Trial) -> Json:
    stored = getattr(trial, "transcript", None)
    transcript = stored.unpack() if stored else None
    return trace_summary(transcript) if transcript else None


def _misses(score: Mapping[str, Any]) -> list[str]:
    """Return why a score failed; imported scores may have no message."""
    message = score.get("message", "")
    return [message] if message and score.get("passed") is False else []
