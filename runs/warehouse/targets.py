"""Targets with what workers found of them and what was run on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery, Sum

from evalhub.teams.models import Project
from runs.models import Run, Target, TargetCheck, Worker

DAYS = 7


@dataclass(frozen=True)
class TargetRow:
    """A target in the list."""

    target: Target
    check: TargetCheck | None
    """The last one that was asked for."""
    is_waiting: bool
    trials: int
    errors: int

    @property
    def state(self) -> str:
        """The word of the badge."""
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
        return "ready" if self.check.available else "cannot start"

    @property
    def model(self) -> str:
        return _word(self.target.definition, "model")

    @property
    def judge(self) -> str:
        return _word(self.target.definition, "judge_target", "judgeTarget")


def _word(definition: dict[str, Any], *names: str) -> str:
    return next((str(definition[name]) for name in names if definition.get(name)), "")


def targets_of(project: Project) -> QuerySet[Target]:
    """Return a project's targets, proposals first."""
    return Target.objects.filter(project=project).order_by("accepted", "name")


def target_rows(project: Project, *, now: datetime) -> list[TargetRow]:
    """Return a project's targets for its list. Three queries."""
    return _rows(targets_of(project), now)


def target_row(target: Target, *, now: datetime) -> TargetRow:
    """Return one target as the list has it. Three queries."""
    return _rows(Target.objects.filter(pk=target.pk), now)[0]


def _rows(targets: QuerySet[Target], now: datetime) -> list[TargetRow]:
    newest = TargetCheck.objects.filter(target=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    found = list(targets.annotate(newest_check=Subquery(newest)))
    checks = TargetCheck.objects.in_bulk([each.newest_check for each in found if each.newest_check])
    runs = Run.objects.filter(target__in=found, created__gte=now - timedelta(days=DAYS)).order_by()
    summed = runs.values("target").annotate(
        done=Sum(F("passed") + F("failed") + F("errors")), broken=Sum("errors")
    )
    sums = {pk: (done, broken) for pk, done, broken in summed.values_list("target", "done", "broken")}
    return [_row(each, checks.get(each.newest_check), sums.get(each.pk, (0, 0)), now) for each in found]


def _row(target: Target, check: TargetCheck | None, sums: tuple[int, int], now: datetime) -> TargetRow:
    return TargetRow(target, check, check is not None and check.is_waiting(now=now), *sums)


@dataclass(frozen=True)
class WorkerRow:
    """A worker, and whether it was heard of lately."""

    worker: Worker
    is_heard: bool

    @property
    def state(self) -> str:
        """The word of the badge."""
        if not self.is_heard:
            return "lost"
        return "working" if self.worker.lanes else "idle"


def worker_rows(*, now: datetime) -> list[WorkerRow]:
    """Return the processes that carry trials. One query."""
    return [WorkerRow(each, now - each.seen < Worker.HEARD_WITHIN) for each in Worker.objects.all()]
