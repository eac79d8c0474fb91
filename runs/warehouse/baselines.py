"""Choose the baseline that a run is compared with."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams import audit
from runs.errors import RequestError
from runs.models import Baseline, Run
from runs.models.run import RunState

LAST_PASS = "last-pass"  # noqa: S105 (a word of the command line, not a password)
"""Selects the newest earlier run in which everything passed."""


@transaction.atomic
def set_baseline(run: Run, *, by: User | None, branch: str = "") -> Baseline:
    """Pin a finished run as the baseline of its suite and target, or of a branch. Raises `RequestError`."""
    if run.state != RunState.FINISHED or run.error:
        raise RequestError(
            f"Run {run.pk} can't be a baseline because it did not finish. Choose a finished run."
        )
    baseline, _ = Baseline.objects.update_or_create(
        suite=run.suite,
        target=run.target,
        branch=branch,
        defaults={"run": run, "by": by if getattr(by, "pk", None) else None},
    )
    audit.record(
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
    audit.record(
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
    if not choice.isdecimal() or not Run.objects.filter(pk=int(choice), project=project_id).exists():
        raise RequestError(f"There is no run '{choice}'. For the baseline, give a run number or {LAST_PASS}.")


def baseline_of(run: Run, choice: str = "") -> Run | None:
    """Return the run's baseline, None if there is none.

    In order: the request's choice, the branch's pinned run, that of the suite and target, then the newest earlier run of the same suite, target and model in which everything passed.
    """
    if choice.isdecimal():
        return Run.objects.filter(pk=int(choice), project=run.project_id).exclude(pk=run.pk).first()
    return (None if choice == LAST_PASS else _pinned(run)) or _last_passing(run)


def _pinned(run: Run) -> Run | None:
    pins = Baseline.objects.filter(suite=run.suite_id, target=run.target_id, branch__in={run.branch, ""})
    # The branch's own sorts before the general one, whose branch is empty.
    pin = pins.exclude(run=run.pk).order_by("-branch").select_related("run").first()
    return pin.run if pin else None


def _last_passing(run: Run) -> Run | None:
    earlier = Run.objects.filter(suite=run.suite_id, target=run.target_id, model=run.model, pk__lt=run.pk)
    return earlier.filter(state=RunState.FINISHED, outcome="pass").order_by("-pk").first()
