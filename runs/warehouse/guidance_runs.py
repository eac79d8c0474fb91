"""Choose the runs from which two versions of guidance are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Q

from runs.models import Run
from runs.models.run import NOT_CONFIRMING, RunState
from scenarios.models import Guidance

MOST_READ = 1_000
MOST_SETTINGS = 12
MOST_RUNS = 5
"""Most runs of each side: the newest."""
_OPEN = (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)


class Setting(NamedTuple):
    """What both sides have in common."""

    target: str
    model: str
    tool_version: str

    @property
    def label(self) -> str:
        return " · ".join(filter(None, self))


@dataclass(frozen=True)
class ChosenRuns:
    """The runs of both sides in one setting, newest first."""

    setting: Setting
    before: tuple[Run, ...]
    after: tuple[Run, ...]
    interleaved: bool
    """Whether every run has its counterpart in the same launch."""

    @property
    def is_open(self) -> bool:
        return any(run.state in _OPEN for run in (*self.before, *self.after))

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
        return f"A: {_named(self.before)}; B: {_named(self.after)}; {self.how}."


def settings_of(before: Guidance, after: Guidance, launch: int | None = None) -> list[ChosenRuns]:
    """Return the settings in which both versions ran, interleaved launches first, then the newest. Two queries.

    Open runs count only within a named launch.
    """
    asked = Q(launch=launch) if launch else Q(state=RunState.FINISHED)
    runs = Run.objects.filter(
        asked, NOT_CONFIRMING, suite=before.suite_id, guidance__in=(before.pk, after.pk)
    )
    columns = ("target__name", "model", "tool_version", "guidance", "launch", "pk")
    sides: dict[Setting, dict[int, list[_Key]]] = {}
    for target, model, tool, guidance, *key in runs.order_by("-pk").values_list(*columns)[:MOST_READ]:
        own = sides.setdefault(Setting(target, model, tool), {before.pk: [], after.pk: []})
        own[guidance].append(_Key(*key))
    both = {
        setting: _chosen(own[before.pk], own[after.pk])
        for setting, own in sides.items()
        if own[before.pk] and own[after.pk]
    }
    shown = sorted(both.items(), key=lambda item: not item[1][2])[:MOST_SETTINGS]
    rows = Run.objects.filter(pk__in=[pk for _, (old, new, _) in shown for pk in (*old, *new)])
    found = {run.pk: run for run in rows.select_related("target", "project")}
    return [
        ChosenRuns(setting, tuple(found[pk] for pk in old), tuple(found[pk] for pk in new), interleaved)
        for setting, (old, new, interleaved) in shown
    ]


class _Key(NamedTuple):
    launch: int
    run: int


def _chosen(before: Sequence[_Key], after: Sequence[_Key]) -> tuple[list[int], list[int], bool]:
    """Return the runs of launches that had both versions, else the newest of each, and whether they are such."""
    both = {key.launch for key in before} & {key.launch for key in after}
    old, new = (
        [key.run for key in keys if not both or key.launch in both][:MOST_RUNS] for keys in (before, after)
    )
    return old, new, bool(both)


def _named(runs: Sequence[Run]) -> str:
    return f"run{'s' * (len(runs) > 1)} {', '.join(str(run.pk) for run in runs)}"
