"""Plan and start the fresh trials that confirm an alert: the affected scenarios on both configurations, in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.lib.numbers import counted
from evalhub.teams import audit
from evaluators.statistics.confirmation import Design, design, least_trials
from evaluators.statistics.estimates import Estimate, sum_of_estimates
from runs.compare.confirmation import TOO_THIN, earlier_runs, earlier_trials, suspicion_of
from runs.db import outbox
from runs.errors import RequestError, Unconfirmable
from runs.launch.budgets import budget_warning, estimates_of
from runs.launch.request import PlannedRun, Request, store_run
from runs.launch.selection import scenarios_of, select_scenarios
from runs.models import Alert, Launch, Run
from runs.models.comparison import Evidence
from runs.models.run import Trigger
from runs.models.run_options import RunOptions, Selection
from runs.workers import wakeups

_SAME = ("suite_version_id", "guidance_id", "target_version_id", "model", "tool_version")


@dataclass(frozen=True)
class ConfirmationPlan:
    """The fresh trials of a confirmation."""

    alert: Alert
    arms: tuple[tuple[Run, PlannedRun], ...]
    """The run whose configuration runs again, with its plan: the new one, then the baseline's."""
    design: Design
    why_alone: str
    """Why the baseline's configuration does not run again; empty if it does."""
    cost: Estimate | None
    """None if no run reported a cost."""
    warning: str
    """About the budget; empty if the plan fits it."""

    @property
    def trials(self) -> int:
        """All fresh trials."""
        return sum(planned.trial_count for _, planned in self.arms)

    @property
    def scenarios(self) -> int:
        """The affected scenarios."""
        return len(self.arms[0][1].scenarios)

    @property
    def sentence(self) -> str:
        """What runs, and what it can show."""
        plan = f"{counted(self.scenarios, 'scenario')} × {counted(self.design.trials, 'trial')}"
        sides = " on each configuration" if len(self.arms) > 1 else " on the new configuration"
        return f"{plan}{sides}: {counted(self.trials, 'trial')}. {self._what_is_shown}"

    @property
    def _what_is_shown(self) -> str:
        expected = (
            f"A change of {self.design.expected * 100:.0f} points, 70 % of what is suspected, is confirmed in"
            f" {self.design.power * 100:.0f} % of cases"
        )
        if self.design.detectable is None:
            return f"{expected}, and no larger change four times out of five."
        return f"{expected}, one of {self.design.detectable * 100:.0f} points four times out of five."


def plan_confirmation(alert: Alert) -> ConfirmationPlan:
    """Return the plan of an alert's confirmation. Raises `Unconfirmable` if it can't be confirmed."""
    related = ("project", "suite", "suite_version__suite", "target", "target_version", "guidance", "launch")
    runs = Run.objects.select_related(*related)
    run = runs.select_related("baseline").get(pk=alert.run_id)
    _refuse(alert, run)
    suspicion = suspicion_of(run)
    if run.baseline_id is None or not suspicion.before:
        raise Unconfirmable(
            f"Run {run.pk} no longer has a regressed scenario to run again. Compare it again."
        )
    baseline = runs.get(pk=run.baseline_id)
    why_alone = _why_alone(run, baseline)
    if why_alone and not earlier_runs(run).exists():
        raise Unconfirmable(f"{why_alone} {TOO_THIN}")
    sides = [run] if why_alone else [run, baseline]
    most = run.project.confirm_trials // (len(sides) * len(suspicion.before))
    earlier = None
    if why_alone:
        name = suspicion.changes[0].rule.name
        earlier = [max(1, n) for n in earlier_trials(run, name, suspicion.before).values()]
    sample = design(suspicion.suspected, most, earlier)
    if sample is None:
        fewest = (
            least_trials(len(suspicion.before), len(suspicion.changes)) * len(sides) * len(suspicion.before)
        )
        raise Unconfirmable(
            f"A confirmation needs {counted(fewest, 'trial')}, and the project's settings allow"
            f" {run.project.confirm_trials}. Raise the most trials of a confirmation there."
        )
    arms = tuple((side, _plan_run(side, tuple(suspicion.before), sample.trials)) for side in sides)
    judged = RunOptions.model_validate(run.options).judge
    estimates = [
        estimate.chosen.cost
        for estimate in estimates_of(run.project, [planned for _, planned in arms], judged=judged)
    ]
    costs = [cost for cost in estimates if cost]
    cost = sum_of_estimates(costs) if costs else None
    warning = budget_warning(cost.expected if cost else None, run.project.confirm_usd)
    return ConfirmationPlan(alert, arms, sample, why_alone, cost, warning)


def _refuse(alert: Alert, run: Run) -> None:
    """Raise `RequestError` if the alert's run can't be confirmed now."""
    if alert.evidence == Evidence.CONFIRMING and alert.confirmation_id:
        raise Unconfirmable(f"Run {run.pk} is being confirmed already.")
    if alert.fresh:
        raise Unconfirmable(
            f"Fresh trials of run {run.pk} have decided already. Testing until one confirms would prove chance."
        )
    if run.target.provider == "imported" or not run.target.accepted:
        raise Unconfirmable(
            f"The target {run.target.name} can't run here, so run {run.pk} can't be confirmed."
        )


def _why_alone(run: Run, baseline: Run) -> str:
    """Return why the baseline's configuration is not run again; empty if it is. A worker may find another reason."""
    if baseline.target.provider == "imported" or not baseline.target.accepted:
        return f"The baseline's target {baseline.target.name} can't run here."
    if baseline.target_id == run.target_id and all(
        getattr(baseline, name) == getattr(run, name) for name in _SAME
    ):
        return "The baseline ran with the same configuration, so the fresh trials are compared with earlier runs."
    return ""


def _plan_run(run: Run, keys: tuple[str, ...], trials: int) -> PlannedRun:
    version = run.suite_version
    chosen = select_scenarios(scenarios_of(version), Selection(only=keys), version.suite.name)
    return PlannedRun(version, run.target, run.model, run.guidance, chosen, trials, run.concurrency)


@transaction.atomic
def start_confirmation(alert: Alert, *, by: User | None) -> Launch:
    """Request an alert's fresh trials in one launch, whose runs take turns. Raises `Unconfirmable`."""
    # Locked, so that of two people at once one starts it.
    alert = Alert.objects.select_for_update().get(pk=alert.pk)
    plan = plan_confirmation(alert)
    project, run = plan.arms[0][0].project, plan.arms[0][0]
    launch = Launch.objects.create(
        project=project, by=by, trigger=Trigger.CONFIRM, priority=run.launch.priority, request={}
    )
    fresh = [_store(launch, of, planned, run) for of, planned in plan.arms]
    launch.request = {"alert": alert.pk, "new": fresh[0].pk, "old": fresh[1].pk if len(fresh) > 1 else None}
    launch.save(update_fields=["request"])
    alert.evidence, alert.confirmation, alert.reason = Evidence.CONFIRMING, launch, plan.why_alone
    alert.save(update_fields=["evidence", "confirmation", "reason"])
    audit.append_event(project, by, "alert.confirm", f"run {run.pk}", launch=launch.pk)
    wakeups.after_commit_prepare([each.pk for each in fresh])
    return launch


def _store(launch: Launch, of: Run, planned: PlannedRun, alerted: Run) -> Run:
    """Store one side of a confirmation, with the versions that the run had which it repeats."""
    changes: dict[str, Any] = {
        "trials": planned.trials,
        "experiment": True,
        "max_usd": launch.project.confirm_usd,
        "expected_tool": of.tool_version,
        "baseline": str(alerted.baseline_id),
    }
    options = RunOptions.model_validate(of.options).without_looks().model_copy(update=changes)
    # A version that no command reports can't be checked: the worker's is taken to be that of the newer run.
    tool_version = of.tool_version if of.tool_version == alerted.tool_version else ""
    request = Request((planned.suite_version,), options=options, tool_version=tool_version, branch=of.branch)
    run = store_run(launch, planned, request)
    run.target_version = of.target_version
    run.save(update_fields=["target_version"])
    run.judge_versions.set(of.judge_versions.all())
    return run


def start_waiting(alert: Alert) -> None:
    """Start an automatic confirmation; where it can't, store the reason and notify: nothing has decided."""
    try:
        start_confirmation(alert, by=None)
    except RequestError as error:
        with transaction.atomic():
            waiting = Alert.objects.filter(pk=alert.pk, evidence=Evidence.CONFIRMING, confirmation=None)
            if waiting.update(evidence=Evidence.NOT_CONFIRMED, reason=str(error)):
                outbox.record_confirmation(alert)
