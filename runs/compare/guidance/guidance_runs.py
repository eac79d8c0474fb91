"""Choose the runs from which two versions of guidance are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from django.db.models import Q

from runs.models import Run
from runs.models.run import MOSTLY_MEASURED, NOT_CONFIRMING, OPEN, RunState
from scenarios.models import Guidance, Suite

MOST_READ = 250
"""The newest runs of each version that are looked through."""
MOST_SETTINGS = 12
MOST_RUNS = 20
"""Most runs of each side: the newest."""


class SharedSetting(NamedTuple):
    """What both sides have in common."""

    target: str
    model: str
    tool_version: str

    @property
    def label(self) -> str:
        return " · ".join(filter(None, self))


@dataclass(frozen=True)
class RunsBySide:
    """The runs of both sides in one setting, newest first."""

    setting: SharedSetting
    before: tuple[Run, ...]
    after: tuple[Run, ...]
    interleaved: bool
    """Whether every run has its counterpart in the same launch."""
    older: int = 0
    """Runs beyond the newest of each side, which are left out."""

    @property
    def is_open(self) -> bool:
        return any(run.state in OPEN for run in (*self.before, *self.after))

    @property
    def open_trials(self) -> int:
        return sum(run.open for run in (*self.before, *self.after))

    @property
    def how(self) -> str:
        """Say how the runs were started."""
        if self.interleaved:
            return "started together, trials in turn"
        return "started at different times, so a drift of the model may add to the difference"

    @property
    def in_turn(self) -> list[int]:
        """The runs of launches that added trials until a verdict on both versions, whose later rounds count."""
        both = {run.launch_id for run in self.before} & {run.launch_id for run in self.after}
        runs = (*self.before, *self.after)
        return [run.pk for run in runs if run.launch_id in both and run.options.get("until_decided")]

    @property
    def sentence(self) -> str:
        """Say which runs are compared."""
        older = f" {self.older} older runs are left out." if self.older else ""
        return f"A: {_name_runs(self.before)}; B: {_name_runs(self.after)}; {self.how}.{older}"


@dataclass(frozen=True)
class FoundSetting:
    """A setting in which both versions ran, with the keys of its runs, newest first."""

    setting: SharedSetting
    before: Sequence[int]
    after: Sequence[int]
    interleaved: bool
    older: int

    def load(self) -> RunsBySide:
        """Read the runs. One query."""
        rows = Run.objects.filter(pk__in=(*self.before, *self.after)).select_related("project")
        by_key = {run.pk: run for run in rows}
        before, after = (tuple(by_key[pk] for pk in side) for side in (self.before, self.after))
        return RunsBySide(self.setting, before, after, self.interleaved, self.older)


def settings_of(before: Guidance, after: Guidance, launch: int | None = None) -> list[FoundSetting]:
    """Return the settings in which both versions ran, interleaved launches first, then the newest. Two queries.

    Open runs count only within a named launch.
    """
    asked = Q(launch=launch) if launch else Q(state=RunState.FINISHED)
    asked &= MOSTLY_MEASURED | Q(open__gt=0)
    runs = Run.objects.filter(asked, NOT_CONFIRMING, suite=before.suite_id)
    columns = ("target__name", "model", "tool_version", "guidance", "launch", "pk")
    ordered = runs.order_by("-pk").values_list(*columns)
    # Each version's own, because newer runs of one may be more than are read.
    newest = chain(*(ordered.filter(guidance=each.pk)[:MOST_READ] for each in (before, after)))
    rows = [
        (SharedSetting(target, model, tool), guidance, _Key(*key))
        for target, model, tool, guidance, *key in sorted(newest, key=itemgetter(-1), reverse=True)
    ]
    return _settings_of_rows(rows, before.pk, after.pk)[:MOST_SETTINGS]


def unusable_runs(before: Guidance, after: Guidance, launch: int | None = None) -> list[Run]:
    """Return the closed runs of a launch, else of the newest one, that had one of two versions and measured nothing.

    One query, two without a named launch.
    """
    runs = Run.objects.filter(NOT_CONFIRMING, suite=before.suite_id, guidance__in=(before, after))
    launch = launch or runs.order_by("-pk").values_list("launch", flat=True).first()
    ended = runs.filter(launch=launch, state__in=(RunState.FINISHED, RunState.CANCELLED)).order_by("pk")
    return [run for run in ended.select_related("guidance") if run.error or run.is_unusable]


def _settings_of_rows(
    rows: Iterable[tuple[SharedSetting, int, _Key]], before: int, after: int
) -> list[FoundSetting]:
    """Return the settings of rows, newest first, in which both versions ran."""
    sides: dict[SharedSetting, dict[int, list[_Key]]] = {}
    for setting, guidance, key in rows:
        sides.setdefault(setting, {before: [], after: []})[guidance].append(key)
    both = [
        _choose_runs(setting, keys[before], keys[after])
        for setting, keys in sides.items()
        if keys[before] and keys[after]
    ]
    return sorted(both, key=lambda each: not each.interleaved)


class Place(NamedTuple):
    """Where versions ran: a target with a model."""

    target: str
    model: str

    @property
    def label(self) -> str:
        return " · ".join(filter(None, self))


_COLUMNS = (
    *("suite", "guidance", "target__name", "model", "tool_version", "launch"),
    *("finished", "rollups_at", "passed", "failed", "errors", "pass_rate", "not_started", "counting"),
)


def read_guidance_runs(suite: Suite, *, most: int) -> list[Run]:
    """Return a suite's newest finished runs with guidance, with the columns that pages over many need. One query."""
    runs = Run.objects.filter(NOT_CONFIRMING, suite=suite, state=RunState.FINISHED).exclude(guidance=None)
    return list(runs.order_by("-pk").select_related("target").only(*_COLUMNS)[:most])


def place_of(run: Run) -> Place:
    """Return where a run ran."""
    return Place(run.target.name, run.model)


def places_of(runs: Sequence[Run]) -> list[Place]:
    """Return where runs, newest first, had guidance: the place with most versions first, then the newest."""
    versions: dict[Place, set[int | None]] = {}
    for run in runs:
        versions.setdefault(place_of(run), set()).add(run.guidance_id)
    return sorted(versions, key=lambda place: -len(versions[place]))


def setting_of_pair(runs: Sequence[Run], before: int, after: int) -> FoundSetting | None:
    """Return the setting in which the page of two versions opens, of runs that are newest first; None without one."""
    rows = [
        (
            SharedSetting(run.target.name, run.model, run.tool_version),
            run.guidance_id,
            _Key(run.launch_id, run.pk),
        )
        for run in runs
        if run.guidance_id in (before, after) and not run.is_unusable
    ]
    return next(iter(_settings_of_rows(rows, before, after)), None)


class _Key(NamedTuple):
    launch: int
    run: int


def _choose_runs(setting: SharedSetting, before: Sequence[_Key], after: Sequence[_Key]) -> FoundSetting:
    """Return the runs of launches that had both versions, else all runs; the newest of each side."""
    both = {key.launch for key in before} & {key.launch for key in after}
    old, new = ([key.run for key in keys if not both or key.launch in both] for keys in (before, after))
    older = sum(max(0, len(side) - MOST_RUNS) for side in (old, new))
    return FoundSetting(setting, old[:MOST_RUNS], new[:MOST_RUNS], bool(both), older)


def _name_runs(runs: Sequence[Run]) -> str:
    return f"run{'s' * (len(runs) > 1)} {', '.join(str(run.pk) for run in runs)}"
