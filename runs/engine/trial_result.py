"""The result of a trial, and its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone
from msgspec.structs import replace

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.grading.evaluate import Evaluation
from evaluators.model import Execution, Json, Score, Transcript, plausible_cost
from evaluators.tool_use.interaction import Interaction
from runs.models.trial import TrialState, json_of, scores_json
from runs.results.files.artifacts import StoredFile


@dataclass(frozen=True)
class TrialResult:
    """Everything stored of a finished trial."""

    outcome: str
    error: str = ""
    error_kind: str = ""
    evaluation: Evaluation | None = None
    execution: Execution = field(default_factory=Execution)
    transcript: Transcript | None = None
    interaction: Interaction | None = None
    artifacts: tuple[StoredFile, ...] = ()
    detail: dict[str, Json] = field(default_factory=dict)
    cancelled: bool = False


def columns_of_result(result: TrialResult) -> dict[str, Any]:
    """Return a result as the trial's columns."""
    evaluation, execution = result.evaluation, result.execution
    usage = execution.usage
    return {
        "state": (TrialState.CANCELLED if result.cancelled else TrialState.FINISHED).value,
        "outcome": "" if result.cancelled else result.outcome,
        "token": "",
        "activity": "",
        "calls_so_far": None,
        "activity_exit_code": None,
        "completed": execution.exit_code == 0 and not execution.timed_out if evaluation else None,
        "timed_out": execution.timed_out,
        "exit_code": execution.exit_code,
        "composite": evaluation.composite if evaluation else None,
        "seconds": execution.seconds,
        "cost_usd": plausible_cost(execution.cost_usd),
        "tokens_in": usage.input if usage else None,
        "tokens_out": usage.known_output if usage else None,
        "tokens_estimated": bool(usage and usage.estimated),
        "error": result.error,
        "error_kind": result.error_kind,
        "answer": _cut(execution.answer or ""),
        "scores": scores_json(evaluation.scores) if evaluation else [],
        "detail": result.detail,
        "finished": timezone.now(),
    }


def _cut(answer: str) -> str:
    """Return an answer as it is stored: its beginning, and how much was left out."""
    left_out = len(answer) - LONGEST_TEXT
    return answer if left_out <= 0 else f"{answer[:LONGEST_TEXT]}\n[... {left_out:,} characters left out ...]"


def judging_row(trial_id: int, score: Score, *, counts: bool = True) -> dict[str, Any]:
    """Return the row of a score's judging."""
    judging = score.judging
    if judging is None:
        raise ValueError(f"{score.layer}/{score.name} is not a judge's score.")
    return {
        "trial": trial_id,
        "counts": counts,
        "name": score.name[:120],
        "score": judging.score,
        "passed": judging.passed,
        "model": judging.model[:200],
        "rubric": judging.rubric,
        "content": json_of(replace(judging, rubric="")),
        "cost_usd": plausible_cost(judging.cost_usd),
        "created": timezone.now(),
    }


def total_cost(result: TrialResult) -> float | None:
    """Return the cost of agent and judges in dollars; None if unknown."""
    judged = [
        s.judging.cost_usd for s in (result.evaluation.scores if result.evaluation else ()) if s.judging
    ]
    known = [cost for cost in map(plausible_cost, (result.execution.cost_usd, *judged)) if cost is not None]
    return sum(known) if known else None
