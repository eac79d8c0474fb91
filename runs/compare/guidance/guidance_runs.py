"""Choose the runs from which two versions of guidance are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from django.db.models import Q

from runs.models import Run
from runs.models.run import MOSTLY_MEASURED, NOT_CONFIRMING, OPEN, RunState
from scenarios.models import Guidance

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
        found = {run.pk: run for run in rows}
        before, after = (tuple(found[pk] for pk in side) for side in (self.before, self.after))
        return RunsBySide(self.setting, before, after, self.interleaved, self.older)


def settings_of(before: Guidance, after: Guidance, launch: int | None = None) -> list[FoundSetting]:
    """Return the settings in which both versions ran, interleaved launches first, then the newest. Two queries.

    Open runs count only within a named launch.
    """
    asked = Q(launch=launch) if launch else Q(state=RunState.FINISHED)
    asked &= MOSTLY_MEASURED | Q(open__gt=0)
    runs = Run.objects.filter(asked, NOT_CONFIRMING, suite=before.suite_id)
    columns = ("target__name", "model", "tool_version", "guidance", "launch", "pk")
    found = runs.order_by("-pk").values_list(*columns)
    # Each version's own, because newer runs of one may be more than are read.
    newest = chain(*(found.filter(guidance=each.pk)[:MOST_READ] for each in (before, after)))
    sides: dict[SharedSetting, dict[int, list[_Key]]] = {}
    for target, model, tool, guidance, *key in sorted(newest, key=itemgetter(-1), reverse=True):
        own = sides.setdefault(SharedSetting(target, model, tool), {before.pk: [], after.pk: []})
        own[guidance].append(_Key(*key))
    both = [
        _choose_runs(setting, own[before.pk], own[after.pk])
        for setting, own in sides.items()
        if own[before.pk] and own[after.pk]
    ]
    return sorted(both, key=lambda each: not each.interleaved)[:MOST_SETTINGS]


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
