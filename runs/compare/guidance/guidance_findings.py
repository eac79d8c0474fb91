"""Find what runs say of two versions of guidance: measures, exposure, quotes and the judge's reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Max

from evalhub.lib.numbers import format_count
from evalhub.teams.models import Project
from evaluators.tool_use.exposure import LEVELS
from runs.compare.guidance.guidance_comparison import (
    FoundSetting,
    RunsBySide,
    basis_of,
    by_change,
    compare_pooled,
    read_comparisons,
    write_comparison,
)
from runs.compare.measure_changes import RunComparison
from runs.models import JudgingRecord, Run, Trial
from runs.models.trial import TrialState
from runs.results.rates import Rate
from scenarios.differences import Hunk, TextDifference, lines_of, text_difference
from scenarios.models import Guidance


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


def list_levels(
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


MOST_REASONS = 20
"""Scenarios whose judge's reasons are shown."""
LONGEST_REASON = 600


@dataclass(frozen=True)
class Link:
    """A scenario with a trial in which it quotes or opens guidance."""

    scenario: str
    trial: int
    side: str


@dataclass(frozen=True)
class DocumentDifference:
    """A document in both versions."""

    path: str
    difference: TextDifference | None
    """None if too long to compare."""
    notes: Sequence[Sequence[Link]]
    """For each hunk, the scenarios that quote a line of it."""
    opened: Sequence[Link]

    @property
    def opened_by(self) -> str:
        """Say how many scenarios opened it on each side."""
        sides = [each.side for each in self.opened]
        counts = [
            f"{format_count(sides.count(side), 'scenario')} in {side}" for side in ("A", "B") if side in sides
        ]
        return f"by {' and '.join(counts)}, a trial of each"


@dataclass(frozen=True)
class Reasons:
    """A judge's reasoning about one trial."""

    trial: int
    score: float | None
    text: str


@dataclass(frozen=True)
class Findings:
    """What the trials of both sides say."""

    compared: RunComparison
    documents: Sequence[DocumentDifference]
    before: dict[str, Reasons]
    """The last reasons in A, by scenario key, where the change is largest."""
    after: dict[str, Reasons]
    levels: Sequence[ExposureLevel]


_findings = msgspec.msgpack.Decoder(Findings)


def read_findings(before: Guidance, after: Guidance, chosen: RunsBySide) -> Findings:
    """Return what compared runs say, as it is stored; else compute it and, if all runs are closed, store it.

    One query if stored, else up to six.
    """
    if chosen.is_open:
        return _compute_findings(before, after, chosen)
    sides = [[(run.pk, run.rollups_at) for run in side] for side in (chosen.before, chosen.after)]
    key = before.pk, after.pk, basis_of(chosen.after[0].project, *sides)
    stored = read_comparisons([key]).get(key)
    return _findings.decode(stored) if stored else _store_findings(before, after, chosen, key[2])


Pair = tuple[Guidance, Guidance, FoundSetting]


def findings_of_pairs(
    project: Project, pairs: Sequence[Pair], measured: Mapping[int, datetime | None]
) -> list[Findings]:
    """Return what closed runs say of each pair of versions; `measured` has when each run was measured.

    One query for all that are stored; up to eight for each other.
    """
    keys = [
        (
            before.pk,
            after.pk,
            basis_of(
                project, *([(run, measured[run]) for run in side] for side in (setting.before, setting.after))
            ),
        )
        for before, after, setting in pairs
    ]
    stored = read_comparisons(keys)
    return [
        _findings.decode(stored[key])
        if key in stored
        else _store_findings(before, after, setting.load(), key[2])
        for key, (before, after, setting) in zip(keys, pairs, strict=True)
    ]


def _store_findings(before: Guidance, after: Guidance, chosen: RunsBySide, basis: str) -> Findings:
    computed = _compute_findings(before, after, chosen)
    write_comparison(before, after, basis, msgspec.msgpack.encode(computed))
    return computed


def _compute_findings(before: Guidance, after: Guidance, chosen: RunsBySide) -> Findings:
    compared = compare_pooled(chosen)
    old = {run.pk for run in chosen.before}
    every = exposed_trials((*chosen.before, *chosen.after))
    a, b = ([each for each in every if (each.run in old) is is_old] for is_old in (True, False))
    keys = [key for key, _ in by_change(compared)[:MOST_REASONS]]
    reasons = _reasons(chosen, keys)
    return Findings(
        compared, list_differences(before, after, a, b), *reasons, list_levels(a, b, compared.scenarios)
    )


def list_differences(
    before: Guidance,
    after: Guidance,
    old_trials: Sequence[ExposedTrial] = (),
    new_trials: Sequence[ExposedTrial] = (),
) -> list[DocumentDifference]:
    """Return the documents that differ, each hunk with the scenarios that quote it."""
    old, new = ({each["path"]: each["content"] for each in side.files} for side in (before, after))
    quoted = find_quotes(old_trials), find_quotes(new_trials)
    documents = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        lines = [lines_of(side[path]) if path in side else [] for side in (old, new)]
        difference = text_difference(*lines)
        hunks = difference.hunks if difference else ()
        opened = [
            Link(scenario, trial, side)
            for side, trials in (("A", old_trials), ("B", new_trials))
            for scenario, trial in find_openings(trials, path).items()
        ]
        notes = [_links(path, hunk, *quoted) for hunk in hunks]
        documents.append(DocumentDifference(path, difference, notes, opened))
    return documents


Quoted = Mapping[tuple[str, int], Mapping[str, int]]


def _links(path: str, hunk: Hunk, old: Quoted, new: Quoted) -> list[Link]:
    """Return the scenarios whose trials quote a changed line: of A a removed one, of B an added one."""
    trials = {
        (scenario, side): trial
        for line in hunk
        if line.look
        for side, number, quoted in (("A", line.before, old), ("B", line.after, new))
        for scenario, trial in quoted.get((path, number or 0), {}).items()
    }
    return [Link(scenario, trial, side) for (scenario, side), trial in sorted(trials.items())]


def _reasons(chosen: RunsBySide, keys: Sequence[str]) -> tuple[dict[str, Reasons], dict[str, Reasons]]:
    """Return each side's last judging's reasons by scenario. One query."""
    runs: tuple[Run, ...] = (*chosen.before, *chosen.after)
    rows = JudgingRecord.objects.filter(
        trial__run__in=runs, trial__is_retest=False, counts=True, trial__scenario__key__in=keys
    )
    last = rows.order_by().values("trial__run__guidance", "trial__scenario").annotate(last=Max("pk"))
    columns = (
        "trial__run__guidance",
        "trial__scenario__key",
        "trial",
        "score",
        "content__reasoning",
        "content__negatives",
        "content__positives",
    )
    reasons: dict[int, dict[str, Reasons]] = {runs[0].guidance_id or 0: {}, runs[-1].guidance_id or 0: {}}
    newest = JudgingRecord.objects.filter(pk__in=last.values("last"))
    for guidance, key, trial, score, reasoning, negatives, positives in newest.values_list(*columns):
        text = (reasoning or " ".join(negatives or positives or ()))[:LONGEST_REASON]
        reasons[guidance][key] = Reasons(trial, score, text)
    old, new = reasons.values()
    return old, new
