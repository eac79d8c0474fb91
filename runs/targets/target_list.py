"""Read targets with their checks and runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery, Sum

from evalhub.teams.models import Project
from runs.labels import format_labels
from runs.models import Run, Target, TargetCheck, Worker
from runs.targets.agents.program_lookup import HiddenFiles
from runs.targets.definitions import dump_yaml, hints_of, read_target
from runs.targets.hidden_programs import hidden_from
from scenarios.formats.parsed import ScenarioFileError

DAYS = 7


@dataclass(frozen=True)
class CheckedTarget:
    """A target with its last check."""

    target: Target
    check: TargetCheck | None
    """The last requested check."""
    is_waiting: bool

    @property
    def state(self) -> str:
        """Return the badge's text."""
        if self.target.is_imported:
            return "results only"
        if not self.target.accepted:
            return "proposed"
        if self.is_waiting:
            return "checking"
        if self.check is None:
            return "not checked"
        if self.check.at is None:
            return "no answer"
        if self.check.available is None:
            return "not checked"
        return "ready" if self.check.available else "cannot start"

    @property
    def labels(self) -> str:
        """The labels that its worker needs, as part of a sentence."""
        return format_labels(self.target.labels)

    @property
    def model(self) -> str:
        return _word(self.target.definition, "model")

    @property
    def judge(self) -> str:
        return _word(self.target.definition, "judge_target", "judgeTarget")


@dataclass(frozen=True)
class TargetRow(CheckedTarget):
    """A target in the list."""

    trials: int
    errors: int

    @property
    def hints(self) -> tuple[str, ...]:
        """Return the fields that it ignores, a sentence each."""
        return () if self.target.is_imported else hints_of(self.target.definition)

    @property
    def hidden(self) -> HiddenFiles:
        """Return what the sandbox hides of its command on this machine."""
        text = dump_yaml(self.target.definition)
        try:
            return hidden_from(read_target(text.encode(), self.target.name), base=self.target.base_folder)
        except ScenarioFileError:  # of an older release
            return HiddenFiles()


def _word(definition: dict[str, Any], *names: str) -> str:
    return next((str(definition[name]) for name in names if definition.get(name)), "")


def target_rows(targets: QuerySet[Target], *, now: datetime) -> list[TargetRow]:
    """Return targets for the list. Three queries."""
    checked = _with_checks(targets, now=now)
    keys = [row.target.pk for row in checked]
    runs = Run.objects.filter(target__in=keys, created__gte=now - timedelta(days=DAYS)).order_by()
    summed = runs.values("target").annotate(
        done=Sum(F("passed") + F("failed") + F("errors")), broken=Sum("errors")
    )
    sums = {pk: (done, broken) for pk, done, broken in summed.values_list("target", "done", "broken")}
    return [
        TargetRow(row.target, row.check, row.is_waiting, *sums.get(row.target.pk, (0, 0))) for row in checked
    ]


def startable_targets(project: Project, *, now: datetime) -> list[CheckedTarget]:
    """Return the targets that can run, by name. Two queries."""
    accepted = Target.objects.filter(project=project, accepted=True).order_by("name")
    return [checked for checked in _with_checks(accepted, now=now) if not checked.target.is_imported]


def _with_checks(targets: QuerySet[Target], *, now: datetime) -> list[CheckedTarget]:
    """Return targets with their last checks. Two queries."""
    newest = TargetCheck.objects.filter(target=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    keyed = {target: getattr(target, "newest", None) for target in targets.annotate(newest=Subquery(newest))}
    stored = TargetCheck.objects.in_bulk([key for key in keyed.values() if key])
    pairs = ((target, stored.get(key or 0)) for target, key in keyed.items())
    return [
        CheckedTarget(target, check, bool(check and check.is_waiting(now=now))) for target, check in pairs
    ]


@dataclass(frozen=True)
class WorkerRow:
    """A worker and whether it is online."""

    worker: Worker
    is_heard: bool

    @property
    def state(self) -> str:
        """Return the badge's text."""
        if not self.is_heard:
            return "lost"
        return "working" if self.worker.lanes else "idle"
