"""Confirm an alert: run its new and its old configuration in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.lib.numbers import counted
from evalhub.teams import audit
from evaluators.statistics.estimates import Estimate, sum_of_estimates
from evaluators.statistics.retest import IN_TURN
from runs.errors import Unconfirmable
from runs.launch.budgets import budget_warning, estimates_of
from runs.launch.request import PlannedRun, Request, store_run
from runs.launch.selection import scenarios_of, select_scenarios
from runs.models import Alert, Launch, Run
from runs.models.comparison import OF_SUITE
from runs.models.run import OPEN, Arm, Preset, Trigger
from runs.models.run_options import RunOptions, Selection
from runs.workers import wakeups

_CONFIGURATION = (
    "target_id",
    "suite_version_id",
    "guidance_id",
    "target_version_id",
    "model",
    "tool_version",
)


@dataclass(frozen=True)
class ConfirmationPlan:
    """The two runs of a confirmation."""

    arms: tuple[tuple[Run, PlannedRun], ...]
    """The run whose configuration runs again, with its plan: the new one, then the old one."""
    cost: Estimate | None
    """None if no run reported a cost."""
    warning: str
    """About the budget; empty if the plan fits it."""

    @property
    def trials(self) -> int:
        """All trials of both runs."""
        return sum(planned.trial_count for _, planned in self.arms)

    @property
    def sentence(self) -> str:
        """What runs."""
        planned = self.arms[0][1]
        plan = f"{counted(len(planned.scenarios), 'scenario')} × {counted(planned.trials, 'trial')}"
        return f"{plan} on the new and on the old configuration, in turn: {counted(self.trials, 'trial')}."


def plan_confirmation(alert: Alert) -> ConfirmationPlan:
    """Return the plan of an alert's confirmation. Raises `Unconfirmable` if it can't be confirmed.

    The scenarios that it names run, else all.
    """
    related = ("project", "suite", "suite_version__suite", "target", "target_version", "guidance", "launch")
    runs = Run.objects.select_related(*related)
    run = runs.select_related("baseline").get(pk=alert.run_id)
    old = runs.filter(pk=run.baseline_id or 0).first()
    _refuse(alert, run, old)
    sides = [run, *([old] if old else [])]
    options = RunOptions.model_validate(run.options)
    trials = IN_TURN if alert.named else options.trials
    arms = tuple((side, _plan_run(side, tuple(alert.named), trials)) for side in sides)
    estimates = estimates_of(run.project, [planned for _, planned in arms], judged=options.judge)
    costs = [estimate.chosen.cost for estimate in estimates if estimate.chosen.cost]
    cost = sum_of_estimates(costs) if costs else None
    return ConfirmationPlan(arms, cost, budget_warning(cost.expected if cost else None, run.max_usd))


def _refuse(alert: Alert, run: Run, old: Run | None) -> None:
    if alert.kind not in OF_SUITE:
        raise Unconfirmable("Only a regression can be confirmed by running both configurations again.")
    if alert.confirmation_id:
        if Run.objects.filter(launch=alert.confirmation_id, state__in=OPEN).exists():
            raise Unconfirmable(f"Run {run.pk} is being confirmed already.")
        raise Unconfirmable(
            f"Fresh trials of run {run.pk} have decided already. Testing until one confirms would prove chance."
        )
    if old is None:
        raise Unconfirmable(
            f"The run that run {run.pk} was compared with was deleted, so the old configuration is gone."
        )
    for side in (run, old):
        if side.target.provider == "imported" or not side.target.accepted:
            raise Unconfirmable(
                f"The target {side.target.name} can't run here, so run {run.pk} can't be confirmed."
            )
    if all(getattr(old, name) == getattr(run, name) for name in _CONFIGURATION):
        raise Unconfirmable(
            f"Run {old.pk} had the same configuration, so there is no old one to run in turn. The line's next run decides."
        )


def _plan_run(run: Run, keys: tuple[str, ...], trials: int) -> PlannedRun:
    version = run.suite_version
    chosen = select_scenarios(scenarios_of(version), Selection(only=keys), version.suite.name)
    return PlannedRun(version, run.target, run.model, run.guidance, chosen, trials, run.concurrency)


@transaction.atomic
def start_confirmation(alert: Alert, *, by: User | None) -> Launch:
    """Request an alert's two runs in one launch, in which they take turns. Raises `Unconfirmable`."""
    # Locked, so that of two people at once one starts it.
    alert = Alert.objects.select_for_update().get(pk=alert.pk)
    plan = plan_confirmation(alert)
    run = plan.arms[0][0]
    launch = Launch.objects.create(
        project=run.project,
        by=by,
        trigger=Trigger.CONFIRM,
        priority=run.launch.priority,
        preset=Preset.CONFIRM,
        about=run,
        request={"alert": alert.pk},
    )
    new, old = (
        _store(launch, of, planned, run, arm)
        for (of, planned), arm in zip(plan.arms, (Arm.NEW, Arm.OLD), strict=True)
    )
    # Until both have ended: the page asks until there is a reason.
    alert.confirmation, alert.reason = launch, ""
    alert.save(update_fields=["confirmation", "reason"])
    audit.append_event(run.project, by, "alert.confirm", f"run {run.pk}", launch=launch.pk)
    wakeups.after_commit_prepare([new.pk, old.pk])
    return launch


def _store(launch: Launch, of: Run, planned: PlannedRun, alerted: Run, arm: Arm) -> Run:
    """Store one side of a confirmation, with the versions that the run had which it repeats."""
    changes: dict[str, Any] = {
        "trials": planned.trials,
        "experiment": True,
        "max_usd": alerted.max_usd,
        "expected_tool": of.tool_version,
        "baseline": str(alerted.baseline_id),
    }
    options = RunOptions.model_validate(of.options).without_looks().model_copy(update=changes)
    # A version that no command reports can't be checked: the worker's is taken to be that of the newer run.
    tool_version = of.tool_version if of.tool_version == alerted.tool_version else ""
    request = Request((planned.suite_version,), options=options, tool_version=tool_version, branch=of.branch)
    run = store_run(launch, planned, request)
    run.target_version, run.arm = of.target_version, arm
    run.save(update_fields=["target_version", "arm"])
    run.judge_versions.set(of.judge_versions.all())
    return run
