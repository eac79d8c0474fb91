"""Recompute a closed run after scores of its trials changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from django.db.models import Count, Q

from evaluators.grading.criteria import CompositeWeights
from evaluators.grading.evaluate import composite, outcome
from evaluators.model import Score
from runs.compare.comparison import compare_named, compare_with_baseline
from runs.compare.line import ALONE
from runs.errors import RequestError
from runs.models import Run, Trial
from runs.models.run import RunState
from runs.models.trial import TrialState
from runs.results.rollups import write_rollups
from runs.results.search.search_index import index_trials

LAYERS = ("gates", "assertions", "evaluators", "judge")
"""Kinds of errors that come from scores, so that new scores can remove them."""


def lock_closed_run(run_id: int) -> Run:
    """Return a closed run, locked until the transaction ends. Raises `RequestError` while it is open."""
    run = Run.objects.select_for_update(of=("self",)).select_related("project", "suite").get(pk=run_id)
    if run.is_open:
        raise RequestError(f"Run {run_id} is in progress. Change its scores after it has finished.")
    return run


def scores_from(rows: Iterable[Any]) -> tuple[Score, ...]:
    """Return stored scores as values."""
    return tuple(msgspec.convert(row, Score, strict=False) for row in rows)


def outcome_of(trial: Trial, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns that follow from these scores: outcome, composite and error."""
    scores = scores_from(rows)
    decided = outcome(scores)
    weights = trial.scenario_version.content.get("criteria", {}).get("composite")
    number, _ = composite(CompositeWeights.model_validate(weights) if weights else None, scores, decided)
    broken = next((score for score in scores if score.error), None)
    errors = " ".join(dict.fromkeys(score.error for score in scores if score.error))
    return {
        "outcome": decided,
        "composite": number,
        "error": errors,
        "error_kind": broken.layer if broken else "",
    }


def can_change_outcome(trial: Trial) -> bool:
    """Return whether new scores decide the trial's outcome: it has not ended by an error of the agent."""
    is_open = trial.state != TrialState.FINISHED
    return not is_open and (not trial.error_kind or trial.error_kind in LAYERS)


def store_scores(trial: Trial, rows: Sequence[dict[str, Any]]) -> None:
    """Replace a trial's scores and what follows from them. Requires a transaction; call `recompute` after it."""
    values = outcome_of(trial, rows)
    trial.scores = list(rows)
    for name, value in values.items():
        setattr(trial, name, value)
    trial.save(update_fields=["scores", *values])


def recompute(run: Run, trials: Sequence[int]) -> None:
    """Recount a closed run and rewrite rollups, digest, verdicts and search entries. Requires a transaction.

    Later runs that are compared with it alone get new verdicts too; those of a line keep theirs, and their pages say so.
    """
    counted = Trial.objects.filter(run=run, round=0, state=TrialState.FINISHED).aggregate(
        passed=Count("pk", filter=Q(outcome="pass")),
        failed=Count("pk", filter=Q(outcome="fail")),
        errors=Count("pk", filter=Q(outcome="error")),
    )
    for name, number in counted.items():
        setattr(run, name, number)
    decided = (("failed", "fail"), ("errors", "error"), ("passed", "pass"))
    run.outcome = next((word for name, word in decided if counted[name]), "")
    run.save(update_fields=[*counted, "outcome"])
    write_rollups(run)
    compare_with_baseline(run)
    compare_named(run)
    later = Run.objects.filter(ALONE, baseline=run, state=RunState.FINISHED, pk__gt=run.pk)
    for later_run in later.select_related("project").order_by("pk"):
        compare_with_baseline(later_run)
    index_trials(trials)
