"""Count judges' identical statements over trials.

Statements that judges decide about are read from rubrics, because their ids lose signs such as those of `12.50` and
`--json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from msgspec import Struct

from runs.models import JudgingRecord, Run, Trial
from scenarios.models import ScenarioVersion

Texts = Mapping[tuple[str, str], str]
"""Statements by the scenario's key and their id."""


def statement_texts(runs: Sequence[Run]) -> Texts:
    """Return the descriptions of all criteria of some runs' rubrics. One query."""
    rows = Trial.objects.filter(run__in=runs).exclude(scenario_version__rubric=None).order_by()
    contents = rows.values_list("scenario__key", "scenario_version__rubric__content__criteria").distinct()
    return {
        (key, criterion["id"]): criterion["description"]
        for key, criteria in contents
        for criterion in criteria or ()
    }


def statements_of(version: ScenarioVersion) -> dict[str, str]:
    """Return the statements of a scenario's rubric by their id; none of a rubric of scores."""
    content = version.rubric.content if version.rubric else {}
    if content.get("form") != "statements":
        return {}
    return {each["id"]: each["description"] for each in content["criteria"]}


class RepeatedStatement(Struct, frozen=True):
    """A statement that a judge repeated in several trials."""

    text: str
    trials: tuple[int, ...]
    """Newest first."""


class ReadJudging(Struct, gc=False):
    """The fields read from a judging; the rest of its JSON is skipped."""

    negatives: list[str] | None = None
    positives: list[str] | None = None
    mismatch: bool = False


_judging = msgspec.json.Decoder(ReadJudging)


class JudgeStatements(Struct, frozen=True):
    """What the judges of some runs said."""

    issues: list[RepeatedStatement]
    """Those in most trials first."""
    highlights: list[RepeatedStatement]
    judged: int
    """Number of judgings that count."""
    contradictory: list[int]
    """Trials with a judging whose total contradicts its weighted criteria."""


def read_judged_statements(runs: Sequence[int]) -> JudgeStatements:
    """Return what judges said, with judgings that count. One query; prompts and raw answers are not loaded."""
    negatives: dict[str, dict[int, None]] = {}
    positives: dict[str, dict[int, None]] = {}
    contradictory: dict[int, None] = {}
    judged = 0
    for trial, text in _judgings(tuple(runs)):
        read = _judging.decode(text)
        judged += 1
        if read.mismatch:
            contradictory[trial] = None
        for texts, trials_by_text in ((read.negatives, negatives), (read.positives, positives)):
            for statement in texts or ():
                trials_by_text.setdefault(" ".join(statement.split()), {})[trial] = None
    return JudgeStatements(_most_frequent(negatives), _most_frequent(positives), judged, list(contradictory))


def _judgings(runs: tuple[int, ...]) -> QuerySet[JudgingRecord, tuple[int, str]]:
    judgings = JudgingRecord.objects.filter(trial__run__in=runs, trial__round=0, counts=True).order_by("pk")
    return judgings.values_list("trial", Cast("content", TextField()))


def _most_frequent(trials_by_text: dict[str, dict[int, None]]) -> list[RepeatedStatement]:
    grouped: dict[str, tuple[str, dict[int, None]]] = {}
    for text, trials in trials_by_text.items():
        key = text.casefold().rstrip(".! ")
        grouped.setdefault(key, (text, {}))[1].update(trials)
    merged = [
        RepeatedStatement(text, tuple(sorted(trials, reverse=True))) for text, trials in grouped.values()
    ]
    return sorted(merged, key=lambda statement: -len(statement.trials))
