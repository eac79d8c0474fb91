"""Choose the baseline that a run is compared with."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, OuterRef, QuerySet, Subquery, When

from evalhub.teams import audit
from runs.errors import RequestError
from runs.models import Baseline, Run, RunMeasure
from runs.models.run import MOSTLY_MEASURED, RunState, Trigger

LAST_PASS = "last-pass"  # noqa: S105 (a word of the command line, not a password)
"""Selects the newest earlier run in which everything passed."""
RECENT = 20
"""Earlier runs among which the baseline is sought."""
NEWEST_FIRST = (
    F("started").desc(nulls_last=True),
    Case(When(trigger=Trigger.IMPORT, then=1), default=0),
    "-pk",
)
"""The order of a line: by when runs ran, an imported copy after its original."""


@transaction.atomic
def set_baseline(run: Run, *, by: User | None, branch: str = "") -> Baseline:
    """Pin a finished run as the baseline of its suite and target, or of a branch. Raises `RequestError`."""
    if run.state != RunState.FINISHED or run.error:
        raise RequestError(
            f"Run {run.pk} can't be a baseline because it did not finish. Choose a finished run."
        )
    if run.is_unusable:
        raise RequestError(f"Run {run.pk} can't be a baseline. {run.no_verdict}")
    if run.trigger == Trigger.CONFIRM:
        raise RequestError(
            f"Run {run.pk} can't be a baseline because it only confirms another. Choose a run of the whole suite."
        )
    if run.suite.has_sessions:
        raise RequestError(
            f"Run {run.pk} can't be a baseline because it holds sessions, which have no gates. Choose a run of a suite."
        )
    baseline, _ = Baseline.objects.update_or_create(
        suite=run.suite,
        target=run.target,
        branch=branch,
        defaults={"run": run, "by": by if getattr(by, "pk", None) else None},
    )
    audit.append_event(
        run.project,
        by,
        "baseline.set",
        f"run {run.pk}",
        suite=run.suite.slug,
        target=run.target.name,
        branch=branch,
    )
    return baseline


@transaction.atomic
def unset_baseline(baseline: Baseline, *, by: User | None) -> None:
    """Remove a pinned baseline; existing comparisons stay."""
    subject = f"run {baseline.run_id}"
    audit.append_event(
        baseline.suite.project,
        by,
        "baseline.unset",
        subject,
        suite=baseline.suite.slug,
        branch=baseline.branch,
    )
    baseline.delete()


def check_choice(project_id: int, choice: str) -> None:
    """Raise `RequestError` if a request's baseline can't be one."""
    if choice in ("", LAST_PASS):
        return
    run = Run.objects.filter(pk=int(choice), project=project_id).first() if choice.isdecimal() else None
    if run is None:
        raise RequestError(f"There is no run '{choice}'. For the baseline, give a run number or {LAST_PASS}.")
    if run.is_unusable and not run.is_open:
        raise RequestError(f"Run {choice} can't be the baseline. {run.no_verdict}")


def run_of_import(project_id: int, run_id: str) -> int | None:
    """Return the newest run imported under another program's id; None without one."""
    if not run_id:
        return None
    earlier = Run.objects.filter(project=project_id, options__import__run_id=run_id)
    return earlier.order_by("-pk").values_list("pk", flat=True).first()


def baseline_of(run: Run, choice: str = "") -> Run | None:
    """Return the run's baseline, None if there is none.

    Runs with too many errors (`MOSTLY_MEASURED`) don't qualify. In order: the request's choice, the branch's pinned run, that of the suite and target, then the newest earlier
    finished run of the same line, with any outcome: choosing only runs that passed would make chance look like a
    regression. With `last-pass` it is the newest earlier one in which everything passed. A run until a verdict keeps
    the one of its first look.
    """
    if run.looks:
        looked_at = Run.objects.filter(MOSTLY_MEASURED, pk=run.looks[0]["against"], project=run.project_id)
        if other := looked_at.exclude(pk=run.pk).first():
            return other
    if choice.isdecimal():
        named = Run.objects.filter(MOSTLY_MEASURED, pk=int(choice), project=run.project_id)
        return named.exclude(pk=run.pk).first()
    if choice == LAST_PASS:
        return runs_alike(run).filter(pk__lt=run.pk, outcome="pass").order_by("-pk").first()
    return pinned_run(run) or newest_among(run)


def pinned_of(suite: int, target: int, branch: str) -> Baseline | None:
    """Return what is pinned for a suite and target, the branch's own before the general one. One query."""
    return _pins(suite, target, branch).select_related("run").first()


def _pins(suite: int, target: int, branch: str) -> QuerySet[Baseline]:
    return Baseline.objects.filter(suite=suite, target=target, branch__in={branch, ""}).order_by("-branch")


def pinned_run(run: Run) -> Run | None:
    """Return the run that is pinned for a run's branch, else for its suite and target. At most two queries."""
    pins = _pins(run.suite_id, run.target_id, run.branch).values_list("run", flat=True)
    pinned = pins.first()
    return Run.objects.filter(MOSTLY_MEASURED, pk=pinned).exclude(pk=run.pk).first() if pinned else None


def runs_alike(run: Run) -> QuerySet[Run]:
    """Return finished runs with the run's suite, target and model; no experiments, no failed runs."""
    same = Run.objects.filter(suite=run.suite_id, target=run.target_id, model=run.model, is_experiment=False)
    return same.filter(MOSTLY_MEASURED, state=RunState.FINISHED, error="")


def newest_among(run: Run, among: Collection[int] | None = None) -> Run | None:
    """Return the newest earlier run alike that has results of as many scenarios, else the newest with any.

    Newest is by when it ran: imported history is older than its rows, and a copy never goes before its original. Only
    runs `among` these, if any are given.
    """
    rollups = RunMeasure.objects.filter(scenario=None, measure__layer="trial", measure__name="pass")
    scenarios = rollups.filter(run=OuterRef("pk")).values("n")[:1]
    earlier = runs_alike(run).filter(pk__lt=run.pk).order_by(*NEWEST_FIRST)
    if among is not None:
        earlier = earlier.filter(pk__in=among)
    recent = list(
        earlier.annotate(scenarios=Subquery(scenarios))[:RECENT].values_list("pk", "scenarios"),
    )
    size = rollups.filter(run=run).values_list("n", flat=True).first() or 0
    whole = [pk for pk, n in recent if n and n >= size]
    some = [pk for pk, n in recent if n]
    chosen = next(iter([*whole, *some]), None)
    return Run.objects.get(pk=chosen) if chosen else None
