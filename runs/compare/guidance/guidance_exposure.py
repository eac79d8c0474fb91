"""Read how far guidance got in the trials of runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluators.tool_use.exposure import LEVELS
from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.results.rates import Rate


@dataclass(frozen=True)
class ExposedTrial:
    """A finished trial without error, and how far its guidance got; an empty `exposure` is unknown."""

    pk: int
    run: int
    scenario: str
    passed: bool
    exposure: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExposureLevel:
    """One level of exposure on both sides."""

    name: str
    before: Rate
    """Trials of A that reached the level, of those in which it is known."""
    after: Rate
    exposed: Rate
    """Passes among the trials of B that reached the level."""
    baseline: Rate
    """Passes among all trials of A on the same scenarios."""


def exposed_trials(runs: Sequence[Run]) -> list[ExposedTrial]:
    """Return the trials of runs that were judged. One query."""
    rows = Trial.objects.filter(
        run__in=runs, is_retest=False, state=TrialState.FINISHED, outcome__in=("pass", "fail")
    )
    columns = ("pk", "run", "scenario__key", "outcome", "detail__exposure")
    return [
        ExposedTrial(pk, run, key, outcome == "pass", exposure or {})
        for pk, run, key, outcome, exposure in rows.order_by("pk").values_list(*columns)
    ]


def levels(
    before: Sequence[ExposedTrial], after: Sequence[ExposedTrial], comparable: Collection[str]
) -> list[ExposureLevel]:
    """Return the levels, the weakest first. Pass rates are over comparable scenarios only."""
    return [_level(name, before, after, comparable) for name in LEVELS]


def _level(
    name: str, before: Sequence[ExposedTrial], after: Sequence[ExposedTrial], comparable: Collection[str]
) -> ExposureLevel:
    exposed = [each for each in after if each.exposure.get(name) and each.scenario in comparable]
    keys = {each.scenario for each in exposed}
    same = [each for each in before if each.scenario in keys]
    return ExposureLevel(
        name, _share(name, before), _share(name, after), _pass_rate(exposed), _pass_rate(same)
    )


def _share(name: str, trials: Sequence[ExposedTrial]) -> Rate:
    known = [each.exposure[name] for each in trials if each.exposure.get(name) is not None]
    return Rate(sum(known), len(known))


def _pass_rate(trials: Sequence[ExposedTrial]) -> Rate:
    return Rate(sum(each.passed for each in trials), len(trials))


def find_quotes(trials: Sequence[ExposedTrial]) -> dict[tuple[str, int], dict[str, int]]:
    """Return which scenarios quoted each line of a document, by path and line, with a trial of each."""
    quotes: dict[tuple[str, int], dict[str, int]] = {}
    for trial in trials:
        for quote in trial.exposure.get("quotes", ()):
            quotes.setdefault((quote["path"], quote["line"]), {}).setdefault(trial.scenario, trial.pk)
    return quotes


def find_openings(trials: Sequence[ExposedTrial], path: str) -> dict[str, int]:
    """Return which scenarios opened a document, with a trial of each."""
    openings: dict[str, int] = {}
    for trial in trials:
        if path in trial.exposure.get("opened_paths", ()):
            openings.setdefault(trial.scenario, trial.pk)
    return openings
