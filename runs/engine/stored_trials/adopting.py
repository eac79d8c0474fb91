"""Make the scores of a reassessment count."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.teams import audit
from runs.compare.recompute import lock_closed_run, recompute, store_scores
from runs.db.transactions import write_transaction
from runs.errors import RequestError, StaleReview
from runs.models import JudgingRecord, ReassessedTrial, Reassessment
from runs.results.adopted_parts import record_adopted
from runs.review.overruling import keep_overruled


def adopt(reassessment: Reassessment, *, by: User | None) -> int:
    """Replace the run's scores by those of a reassessment and recompute the run; return the number of trials.

    Overruled scores stay overruled. Raises `RequestError` if it is unfinished or has no scores, and `StaleReview` if
    it was adopted already.
    """
    with write_transaction():
        run = lock_closed_run(reassessment.run_id)
        reassessment = Reassessment.objects.get(pk=reassessment.pk)
        if reassessment.finished is None:
            raise RequestError(f"This {reassessment} has not finished. Adopt it when it has.")
        if reassessment.adopted is not None:
            raise StaleReview(f"This {reassessment} was adopted already. Nothing changed.")
        rows = list(
            reassessment.trials.exclude(outcome="").select_related("trial__scenario_version", "graded_by")
        )
        if not rows:
            raise RequestError(f"This {reassessment} has no scores to adopt.")
        for row in rows:
            _replace(reassessment, row)
        reassessment.adopted, reassessment.adopted_by = timezone.now(), by
        reassessment.save(update_fields=["adopted", "adopted_by"])
        record_adopted(run, reassessment, rows)
        recompute(run, [row.trial_id for row in rows])
        judges = reassessment.kind == Reassessment.Kind.JUDGE
        audit.append_event(
            run.project,
            by,
            "run.judge-adopt" if judges else "run.grade-adopt",
            f"run {run.pk}",
            trials=len(rows),
        )
    return len(rows)


def _replace(reassessment: Reassessment, row: ReassessedTrial) -> None:
    trial = row.trial
    store_scores(trial, keep_overruled(trial, _with_current(reassessment, trial.scores, row.scores)))
    if reassessment.kind == Reassessment.Kind.JUDGE:
        JudgingRecord.objects.filter(trial=trial, counts=True).update(counts=False)
        JudgingRecord.objects.filter(pk__in=row.judgings.values("pk")).update(counts=True)


def _with_current(
    reassessment: Reassessment, now: list[dict[str, Any]], new: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the trial's current scores with those of the assessed layers replaced.

    Another reassessment may have been adopted since this one was made.
    """
    judge = reassessment.kind == Reassessment.Kind.JUDGE
    layers = {"judge", "evaluators"} if judge else {"gates", "assertions", "scripts"}
    others = [row for row in now if row["layer"] not in layers]
    return [*others, *(row for row in new if row["layer"] in layers)]
