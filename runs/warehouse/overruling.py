"""Overrule a score of a trial, and undo it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.teams import audit
from runs.errors import RequestError, StaleReview
from runs.models import Overrule, Trial
from runs.queue.transactions import write_transaction
from runs.warehouse.recompute import can_change, lock_closed_run, recompute, store_scores

LONGEST_REASON = 5_000


def overrule(trial: Trial, position: int, *, passed: bool, reason: str, by: User | None) -> Overrule:
    """Replace the verdict of a trial's score at a position; outcome, rollups and verdicts of the run follow.

    Raises `RequestError` for an unknown or undecided score, without a reason or a person, and if somebody else
    overruled the score first.
    """
    if by is None or not by.pk:
        raise RequestError("Overruling needs a person. Sign in, or use a token that belongs to a person.")
    if not reason.strip():
        raise RequestError("Give a reason for overruling the score.")
    with write_transaction():
        run = lock_closed_run(trial.run_id)
        trial = Trial.objects.select_related("scenario_version").get(pk=trial.pk)
        score = _decided(trial, position)
        key = _key(trial.scores, position)
        if (other := _active(trial).filter(**key).select_related("by").first()) is not None:
            name = other.by.get_username() if other.by else "somebody"
            raise StaleReview(
                f"{name} overruled this score on {other.at:%-d %b %Y, %H:%M}; nothing changed. Undo that first."
            )
        if score["passed"] is passed:
            raise RequestError(f"This score is {'passed' if passed else 'failed'} already. Nothing changed.")
        made = Overrule.objects.create(
            trial=trial,
            **key,
            passed=passed,
            original=score,
            reason=reason.strip()[:LONGEST_REASON],
            by=by,
        )
        trial.scores[position] = _overruled(made)
        store_scores(trial, trial.scores)
        recompute(run, [trial.pk])
        audit.record(
            run.project,
            by,
            "overrule",
            f"trial {trial.pk}",
            score=f"{key['layer']}/{key['name']}",
            passed=passed,
        )
    return made


def undo(made: Overrule, *, by: User | None) -> None:
    """Put the original score back. Raises `RequestError` if somebody has undone it already."""
    with write_transaction():
        run = lock_closed_run(made.trial.run_id)
        trial = Trial.objects.select_related("scenario_version").get(pk=made.trial_id)
        if not _active(trial).filter(pk=made.pk).update(undone=timezone.now(), undone_by=by):
            raise StaleReview("Somebody has undone this already. Nothing changed.")
        position = _position(trial.scores, made)
        if position is not None:
            trial.scores[position] = made.original
        store_scores(trial, trial.scores)
        recompute(run, [trial.pk])
        audit.record(run.project, by, "overrule.undo", f"trial {trial.pk}", score=f"{made.layer}/{made.name}")


def keep_overruled(trial: Trial, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return new scores with the trial's overruled ones still in force; the new ones become their originals."""
    for made in _active(trial):
        position = _position(rows, made)
        if position is None:
            made.undone = timezone.now()
        else:
            made.original = rows[position]
            rows[position] = _overruled(made)
        made.save(update_fields=["original", "undone"])
    return rows


def _active(trial: Trial) -> Any:
    return Overrule.objects.filter(trial=trial, undone=None)


def _decided(trial: Trial, position: int) -> dict[str, Any]:
    scores = trial.scores
    if not can_change(trial):
        raise RequestError(f"Trial {trial.pk} has no scores that decide. Overrule a trial that was scored.")
    if not 0 <= position < len(scores):
        raise RequestError(
            f"Trial {trial.pk} has no score at position {position}. It has {len(scores)}, from 0."
        )
    score: dict[str, Any] = scores[position]
    if score.get("passed") is None and not score.get("error"):
        raise RequestError(
            f"{score['layer']}/{score['name']} informs and does not decide, so there is nothing to overrule."
        )
    return {"passed": None, **score}


def _key(scores: Sequence[dict[str, Any]], position: int) -> dict[str, Any]:
    layer, name = scores[position]["layer"], scores[position]["name"]
    before = scores[:position]
    nth = sum(each["layer"] == layer and each["name"] == name for each in before)
    return {"layer": layer, "name": name[:200], "nth": nth}


def _position(scores: Sequence[dict[str, Any]], made: Overrule) -> int | None:
    """Return where an overruled score is; None if the scores no longer have it."""
    same = [
        n for n, each in enumerate(scores) if (each["layer"], each["name"][:200]) == (made.layer, made.name)
    ]
    return same[made.nth] if made.nth < len(same) else None


def _overruled(made: Overrule) -> dict[str, Any]:
    kept = {name: value for name, value in made.original.items() if name != "error"}
    name = made.by.get_username() if made.by else "a former member"
    verdict = "passed" if made.passed else "failed"
    return {
        **kept,
        "passed": made.passed,
        "message": f"Overruled by {name}: {verdict}. {made.reason}",
        "detail": {**made.original.get("detail", {}), "overruled": made.pk},
    }
