"""Confirm an alert: run its new and its old configuration in turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.lib.numbers import format_count
from evalhub.teams import audit
from evaluators.statistics.descriptive import Estimate, sum_of_estimates
from evaluators.statistics.retest import IN_TURN
from runs.errors import Unconfirmable
from runs.launch.estimate import budget_warning, estimates_of
from runs.launch.request import PlannedRun, store_launch
from runs.launch.selection import scenarios_of, select_scenarios
from runs.models import Alert, Launch, Run
from runs.models.comparison import OF_SUITE
from runs.models.run import OPEN, Arm, Preset, Trigger
from runs.models.run_options import RunOptions, Selection

_CONFIGURATION = (
    "target_id",
    "suite_version_id",
    "guidance_id",
    "target_version_id",
    "model",
    "tool_version",
)
_REPEATED = (
    *("project", "suite_version", "target", "target_version", "model", "guidance", "concurrency", "branch"),
)


@dataclass(frozen=True)
class ConfirmationPlan:
    """The two runs of a confirmation."""

    arms: tuple[PlannedRun, ...]
    """The runs whose configurations run again: the new one, then the old one."""
    cost: Estimate | None
    """None if no run reported a cost."""
    warning: str
    """About the budget; empty if the plan fits it."""

    @property
    def trials(self) -> int:
        """All trials of both runs."""
        return sum(each.trial_count for each in self.arms)

    @property
    def sentence(self) -> str:
        """What runs."""
        planned = self.arms[0]
        plan = f"{format_count(len(planned.scenarios), 'scenario')} × {format_count(planned.trials, 'trial')}"
        return (
            f"{plan} on the new and on the old configuration, in turn: {format_count(self.trials, 'trial')}."
        )


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
    wanted = Selection(only=tuple(alert.named))
    arms = tuple(
        PlannedRun(
            side,
            select_scenarios(scenarios_of(side.suite_version), wanted, side.suite_version.suite.name),
            trials,
        )
        for side in sides
    )
    estimates = estimates_of(run.project, arms, judged=options.judge)
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


@transaction.atomic
def start_confirmation(alert: Alert, *, by: User | None) -> Launch:
    """Request an alert's two runs in one launch, in which they take turns. Raises `Unconfirmable`."""
    # Locked, so that of two people at once one starts it.
    alert = Alert.objects.select_for_update().get(pk=alert.pk)
    plan = plan_confirmation(alert)
    alerted = plan.arms[0].run
    launch = Launch(
        project=alerted.project,
        by=by,
        trigger=Trigger.CONFIRM,
        priority=alerted.launch.priority,
        preset=Preset.CONFIRM,
        about=alerted,
        request={"alert": alert.pk},
    )
    planned = [
        replace(each, run=_repeat(each.run, alerted, each.trials, arm))
        for each, arm in zip(plan.arms, (Arm.NEW, Arm.OLD), strict=True)
    ]
    store_launch(launch, planned)
    for each, of in zip(planned, plan.arms, strict=True):
        each.run.judge_versions.set(of.run.judge_versions.all())
    # Until both have ended: the page asks until there is a reason.
    alert.confirmation, alert.reason = launch, ""
    alert.save(update_fields=["confirmation", "reason"])
    audit.append_event(alerted.project, by, "alert.confirm", f"run {alerted.pk}", launch=launch.pk)
    return launch


def _repeat(of: Run, alerted: Run, trials: int, arm: Arm) -> Run:
    """Return one side of a confirmation, with the versions that the run had which it repeats."""
    changes: dict[str, Any] = {
        "trials": trials,
        "experiment": True,
        "max_usd": alerted.max_usd,
        "expected_tool": of.tool_version,
        "baseline": str(alerted.baseline_id),
    }
    options = RunOptions.model_validate(of.options).without_looks().model_copy(update=changes)
    return Run(
        **{name: getattr(of, name) for name in _REPEATED},
        suite=of.suite_version.suite,
        # A version that no command reports can't be checked: the worker's is taken to be that of the newer run.
        tool_version=of.tool_version if of.tool_version == alerted.tool_version else "",
        is_experiment=True,
        options=options.model_dump(mode="json"),
        warnings=[*filter(None, [options.baseline_note])],
        max_usd=alerted.max_usd,
        arm=arm,
    )
