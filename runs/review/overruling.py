"""Overrule scores and single criteria of a trial, and undo it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.lib.limits import LONGEST_REASON
from evalhub.lib.numbers import date_and_time
from evalhub.teams import audit
from evaluators.grading.judges.rubric import DEFAULT_THRESHOLD
from evaluators.grading.judges.rubric_judge import NAME, reaches_threshold
from evaluators.grading.recomputing import (
    checklist_named,
    evaluators_from_members,
    judge_from_criteria,
    with_value,
)
from evaluators.grading.scores import Evaluator
from evaluators.model import Score
from runs.compare.comparison import can_change_outcome, lock_closed_run, recompute, scores_from, store_scores
from runs.db.transactions import write_transaction
from runs.errors import RequestError, StaleReview
from runs.models import JudgingRecord, Overrule, Trial
from runs.models.trial import scores_json
from runs.results.measures import CRITERION

Row = dict[str, Any]
EVALUATORS, AGGREGATE = "evaluators", "score"
REPORTED = "reported"
"""In a score's detail: the original of a score that follows from overruled ones."""


def overrule(
    trial: Trial,
    position: int,
    *,
    reason: str,
    by: User | None,
    passed: bool | None = None,
    value: float | None = None,
    criterion: str = "",
) -> Overrule:
    """Replace the verdict or the number of a trial's score, or the answer to a checklist's criterion.

    `value` is between 0 and 1; the judge's verdict follows from its threshold. What depends on the score follows: the
    judge's score from its criteria, averages from their members, outcome, rollups and verdicts of the run.

    Raises `RequestError` for a score that can't be changed so, without a reason or a person, and `StaleReview` if
    somebody else overruled the score first.
    """
    if by is None or not by.pk:
        raise RequestError("Overruling needs a person. Sign in, or use a token that belongs to a person.")
    if not reason.strip():
        raise RequestError("Give a reason for overruling the score.")
    with write_transaction():
        run = lock_closed_run(trial.run_id)
        trial = Trial.objects.select_related("scenario_version").get(pk=trial.pk)
        active = _active(trial)
        score = _score(trial, position)
        key = {**_key(trial.scores, position), "criterion": criterion}
        _check_first(active, key)
        base = restore_scores(trial.scores, active)
        if criterion:
            original = _check_answer(trial, score, criterion)
            if passed is None or value is not None:
                raise RequestError(f"Answer criterion '{criterion}' with yes or no.")
        else:
            original = base[position]
            passed = _verdict(trial, original, passed, value)
        if original.get("passed") is passed and (value is None or original.get("value") == value):
            raise RequestError(f"This score is {_words(passed, value)} already. Nothing changed.")
        created = Overrule.objects.create(
            trial=trial,
            **key,
            passed=passed,
            value=value,
            original=original,
            reason=reason.strip()[:LONGEST_REASON],
            by=by,
        )
        store_scores(trial, apply_overrules(trial, base, [*active, created]))
        recompute(run, [trial.pk])
        named = f"{key['layer']}/{key['name']}" + (f"/{criterion}" if criterion else "")
        audit.append_event(
            run.project, by, "overrule", f"trial {trial.pk}", score=named, passed=passed, value=value
        )
    return created


def undo_overrule(overruled: Overrule, *, by: User | None) -> None:
    """Put the original score back. Raises `StaleReview` if somebody has undone it already."""
    with write_transaction():
        run = lock_closed_run(overruled.trial.run_id)
        trial = Trial.objects.select_related("scenario_version").get(pk=overruled.trial_id)
        active = _active(trial)
        if not Overrule.objects.filter(pk=overruled.pk, undone=None).update(
            undone=timezone.now(), undone_by=by
        ):
            raise StaleReview("Somebody has undone this already. Nothing changed.")
        left = [each for each in active if each.pk != overruled.pk]
        store_scores(trial, apply_overrules(trial, restore_scores(trial.scores, active), left))
        recompute(run, [trial.pk])
        audit.append_event(
            run.project, by, "overrule.undo", f"trial {trial.pk}", score=f"{overruled.layer}/{overruled.name}"
        )


def keep_overruled(trial: Trial, rows: list[Row]) -> list[Row]:
    """Return new scores with the trial's overruled ones still in force; the new ones become their originals.

    Scores that the new ones don't have are no longer overruled.
    """
    active = _active(trial)
    rows = restore_scores(rows, active)
    remaining = []
    for overruled in active:
        position = position_of(rows, overruled)
        if position is None:
            overruled.undone = timezone.now()
        else:
            remaining.append(overruled)
            overruled.original = overruled.original if overruled.criterion else rows[position]
        overruled.save(update_fields=["original", "undone"])
    return apply_overrules(trial, rows, remaining)


def restore_scores(rows: Sequence[Row], active: Sequence[Overrule]) -> list[Row]:
    """Return the scores as they were before people overruled some."""
    originals = {overruled.pk: overruled.original for overruled in active if not overruled.criterion}
    restored = []
    for row in rows:
        detail = row.get("detail") or {}
        restored.append(detail.get(REPORTED) or originals.get(int(detail.get("overruled") or 0), row))
    return restored


def apply_overrules(trial: Trial, base: Sequence[Row], active: Sequence[Overrule]) -> list[Row]:
    """Return the original scores with the overruled ones in place, and those that follow from them."""
    rows = list(base)
    fixed: set[int] = set()
    for overruled in active:
        position = position_of(rows, overruled)
        if position is not None and not overruled.criterion:
            rows[position] = _apply_overrule(overruled)
            fixed.add(position)
    for changed in (_from_checks, _from_evaluators, _from_criteria):
        rows = changed(trial, rows, fixed, active)
    return rows


def position_of(rows: Sequence[Row], overruled: Overrule) -> int | None:
    """Return where an overruled score is; None if the scores no longer have it."""
    same = [
        n
        for n, row in enumerate(rows)
        if (row["layer"], row["name"][:200]) == (overruled.layer, overruled.name)
    ]
    return same[overruled.nth] if overruled.nth < len(same) else None


def takes_number(row: Row) -> bool:
    """Return whether a person can replace the score by a number: the judge's, a criterion's, an evaluator's."""
    layer, name = str(row["layer"]), str(row["name"])
    if layer == EVALUATORS:
        return name != AGGREGATE
    return layer == "judge" and (name == NAME or name.startswith(CRITERION))


def takes_verdict(row: Row) -> bool:
    """Return whether a person can replace the score's verdict: it decides."""
    return row.get("passed") is not None or bool(row.get("error"))


def read_checklists(trial: Trial, judgings: Iterable[JudgingRecord]) -> dict[str, dict[str, bool]]:
    """Return the judge's yes-or-no answers by evaluator and criterion, from the trial's judgings that count."""
    evaluators = _evaluators(trial)
    return {
        judging.name: {name: bool(value) for name, value in (judging.content.get("criteria") or {}).items()}
        for judging in judgings
        if judging.counts and checklist_named(evaluators, judging.name)
    }


def _active(trial: Trial) -> list[Overrule]:
    return list(Overrule.objects.filter(trial=trial, undone=None).select_related("by"))


def _check_first(active: Sequence[Overrule], key: dict[str, Any]) -> None:
    """Raise `StaleReview` if somebody has overruled the same score."""
    for other in active:
        if all(getattr(other, name) == value for name, value in key.items()):
            name = other.by.get_username() if other.by else "somebody"
            raise StaleReview(
                f"{name} overruled this score on {date_and_time(other.at)}; nothing changed. Undo that first."
            )


def _score(trial: Trial, position: int) -> Row:
    scores = trial.scores
    if not can_change_outcome(trial):
        raise RequestError(f"Trial {trial.pk} has no scores that decide. Overrule a trial that was scored.")
    if not 0 <= position < len(scores):
        raise RequestError(
            f"Trial {trial.pk} has no score at position {position}. It has {len(scores)}, from 0."
        )
    score: Row = scores[position]
    return score


def _verdict(trial: Trial, score: Row, passed: bool | None, value: float | None) -> bool | None:
    """Return the verdict that a person's verdict or number gives. Raises `RequestError` if it can't be given."""
    name = f"{score['layer']}/{score['name']}"
    if value is None:
        if passed is None:
            raise RequestError("Choose a new verdict, or give a new score from 0 to 1.")
        if not takes_verdict(score):
            hint = " Give it a number from 0 to 1." if takes_number(score) else ""
            raise RequestError(f"{name} informs and does not decide, so it has no verdict to overrule.{hint}")
        return passed
    if not takes_number(score):
        raise RequestError(f"{name} has no number to overrule. Choose pass or fail.")
    if not 0 <= value <= 1:
        raise RequestError(f"A score of {value:g} is outside the rubric's scale. Give a number from 0 to 1.")
    if not takes_verdict(score):
        if passed is not None:
            raise RequestError(f"{name} informs and does not decide. Give only its number.")
        return None
    follows = reaches_threshold(value, threshold_of(trial))
    if passed is not None and passed is not follows:
        raise RequestError(
            f"A judge score of {value:g} {'reaches' if follows else 'is below'} the threshold of "
            f"{threshold_of(trial):g}. Give the number or the verdict, not both."
        )
    return follows


def threshold_of(trial: Trial) -> float:
    """Return the pass threshold of the trial's judge."""
    judge = trial.scenario_version.content.get("criteria", {}).get("judge") or {}
    threshold: float = judge.get("pass_threshold", DEFAULT_THRESHOLD)
    return threshold if judge.get("enabled", True) else DEFAULT_THRESHOLD


def _evaluators(trial: Trial) -> tuple[Evaluator, ...]:
    """Return the scenario's evaluators; it is only parsed if it has some."""
    version = trial.scenario_version
    has_some = version.content.get("criteria", {}).get("evaluators")
    return version.spec.criteria.evaluators if has_some else ()


def _check_answer(trial: Trial, score: Row, criterion: str) -> Row:
    """Return the judge's answer to a checklist's criterion. Raises `RequestError` if it has none."""
    name = f"{score['layer']}/{score['name']}"
    is_evaluator = score["layer"] == EVALUATORS
    answers = read_checklists(trial, trial.judgings.all()).get(score["name"], {}) if is_evaluator else {}
    if criterion not in answers:
        known = f" It has {', '.join(sorted(answers))}." if answers else ""
        raise RequestError(f"{name} has no yes-or-no criterion '{criterion[:100]}'.{known}")
    return {"passed": answers[criterion], "value": float(answers[criterion])}


def _words(passed: bool | None, value: float | None) -> str:
    verdict = "" if passed is None else "passed" if passed else "failed"
    return verdict if value is None else f"{value:g}"


def _key(scores: Sequence[Row], position: int) -> dict[str, Any]:
    layer, name = scores[position]["layer"], scores[position]["name"]
    before = scores[:position]
    nth = sum(each["layer"] == layer and each["name"] == name for each in before)
    return {"layer": layer, "name": name[:200], "nth": nth}


def _apply_overrule(overruled: Overrule) -> Row:
    original = {name: value for name, value in overruled.original.items() if name != "error"}
    name = overruled.by.get_username() if overruled.by else "a former member"
    changed = {} if overruled.value is None else {"value": overruled.value}
    return {
        **original,
        **changed,
        "passed": overruled.passed,
        "message": f"Overruled by {name}: {overruled.given}. {overruled.reason}",
        "detail": {**overruled.original.get("detail", {}), "overruled": overruled.pk},
    }


def _from_checks(trial: Trial, rows: list[Row], fixed: set[int], active: Sequence[Overrule]) -> list[Row]:
    """Compute the checklists with overruled criteria again."""
    with_criterion = [each for each in active if each.criterion]
    answers = read_checklists(trial, trial.judgings.all()) if with_criterion else {}
    for name in {each.name for each in with_criterion}:
        overruled = {each.criterion: bool(each.passed) for each in with_criterion if each.name == name}
        item = checklist_named(_evaluators(trial), name)
        position = next(
            (n for n, row in enumerate(rows) if (row["layer"], row["name"]) == (EVALUATORS, name)), None
        )
        if item is not None and position is not None and position not in fixed:
            value, failed = item.total({**answers.get(name, {}), **overruled})
            rows[position] = _following(
                rows[position], with_value(_one(rows[position]), value, failed=failed)
            )
    return rows


def _from_evaluators(trial: Trial, rows: list[Row], fixed: set[int], active: Sequence[Overrule]) -> list[Row]:
    """Compute averages of evaluators again, if one of them changed."""
    if not any(each.layer == EVALUATORS and each.name != AGGREGATE for each in active):
        return rows
    of_evaluators = {n: row for n, row in enumerate(rows) if row["layer"] == EVALUATORS}
    known = {row["name"]: _one(row) for row in of_evaluators.values()}
    again = evaluators_from_members(
        _evaluators(trial), known, {rows[n]["name"] for n in fixed if n in of_evaluators}
    )
    for n, row in of_evaluators.items():
        if again[row["name"]] != known[row["name"]]:
            rows[n] = _following(row, again[row["name"]])
    return rows


def _from_criteria(trial: Trial, rows: list[Row], fixed: set[int], active: Sequence[Overrule]) -> list[Row]:
    """Compute the judge's score again, if one of its criteria changed and it isn't overruled itself."""
    position = next((n for n, row in enumerate(rows) if row["layer"] == row["name"] == NAME), None)
    changed = any(rows[n]["layer"] == "judge" and rows[n]["name"].startswith(CRITERION) for n in fixed)
    if position is None or position in fixed or not changed:
        return rows
    criteria = [_one(row) for row in rows if row["layer"] == "judge" and row["name"].startswith(CRITERION)]
    judged = judge_from_criteria(_one(rows[position]), criteria, threshold_of(trial))
    rows[position] = _following(rows[position], judged)
    return rows


def _one(row: Row) -> Score:
    return scores_from([row])[0]


def _following(row: Row, score: Score) -> Row:
    """Return a score that follows from overruled ones, with its original in the detail."""
    detail = row.get("detail") or {}
    original = detail.get(REPORTED) or row
    following = msgspec.structs.replace(score, detail={**score.detail, REPORTED: original})
    (scored,) = scores_json((following,))
    return {**scored, "passed": following.passed}
