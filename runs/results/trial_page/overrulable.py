"""The scores and criteria of a trial that a person can overrule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from runs.compare.recompute import can_change_outcome
from runs.models import Overrule, Trial
from runs.review.overruling import takes_number, takes_verdict


class Overrulable(NamedTuple):
    """A score or a criterion, and what may replace it."""

    address: str
    label: str
    takes: str
    """What replaces it: `verdict`, `number` or `both`."""


def _overrulable(position: int, row: dict[str, Any]) -> Overrulable:
    takes = (
        "both" if takes_verdict(row) and takes_number(row) else "verdict" if takes_verdict(row) else "number"
    )
    return Overrulable(str(position), _score_label(row), takes)


def overrulable_scores(
    trial: Trial, overrules: Sequence[Overrule], checklists: Mapping[str, Mapping[str, bool]]
) -> list[Overrulable]:
    """Return what can be overruled, the judge's scores first; nothing where that can't change the outcome.

    `checklists` are the judge's yes-or-no answers by evaluator and criterion.
    """
    if not can_change_outcome(trial):
        return []
    rows = [
        (n, row)
        for n, row in enumerate(trial.scores)
        if (takes_verdict(row) or takes_number(row)) and not (row.get("detail") or {}).get("overruled")
    ]
    rows.sort(key=lambda item: item[1]["layer"] != "judge")
    overruled = {(each.name, each.criterion) for each in overrules if not each.undone}
    return [
        score
        for n, row in rows
        for score in (_overrulable(n, row), *_criteria(n, row, checklists.get(row["name"], {}), overruled))
    ]


def _criteria(
    position: int, row: dict[str, Any], answers: Mapping[str, bool], overruled: set[tuple[str, str]]
) -> Iterator[Overrulable]:
    """Yield the criteria of an evaluator that nobody has overruled."""
    if row["layer"] != "evaluators":
        return
    for name, answer in sorted(answers.items()):
        if (row["name"], name) not in overruled:
            label = f"{row['name']}: {name} ({'yes' if answer else 'no'})"
            yield Overrulable(f"{position}:{name}", label, "verdict")


def _score_label(row: dict[str, Any]) -> str:
    passed, value = row.get("passed"), row.get("value")
    verdict = "error" if row.get("error") else "" if passed is None else "passed" if passed else "failed"
    number = f"{value:.2f}" if takes_number(row) and value is not None else ""
    name = "judge" if row["layer"] == row["name"] == "judge" else f"{row['layer']}: {row['name']}"
    return f"{name} ({', '.join(filter(None, (verdict, number))) or 'no score'})"
