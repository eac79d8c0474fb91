"""Set the possible causes of a regression apart: fresh runs, each with one factor as in the baseline.

One-factor-at-a-time: a fresh run of the same configuration is the control, and every other run differs from it in one
factor. So a regression that was chance doesn't point at anything. A run that is still regressed against the baseline,
with a factor set back, doesn't owe it to that factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from evalhub.teams import audit
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.differences import changed_factors
from runs.compare.measure_changes import compare_run_measures
from runs.errors import RequestError
from runs.launch.request import PlannedRun, Request, launch_of, plan, store_launch
from runs.launch.selection import with_recommended_judge
from runs.models import Run
from runs.models.run import Arm as Arms
from runs.models.run import Preset, RunState, Trigger
from runs.models.run_options import RunOptions, Selection

CONTROL = ""
"""The arm of the run's own configuration."""
RELATED = ("project", "suite_version__suite", "suite", "target", "target_version", "guidance", "launch")


@dataclass(frozen=True)
class SeparationArm:
    """One fresh run of a separation."""

    factor: str
    """The factor that is as in the baseline; empty for the control."""
    run: Run


@dataclass(frozen=True)
class Separation:
    """What can be set apart for a run, and the fresh runs so far."""

    run: Run
    baseline: Run
    arms: tuple[SeparationArm, ...]

    @cached_property
    def changed(self) -> list[str]:
        return changed_factors(self.baseline.fingerprint, self.run.fingerprint)

    @cached_property
    def factors(self) -> list[str]:
        """The changed factors that stored configurations can set back."""
        return [factor for factor in self.changed if factor in _SET_BACK and _differs(self, factor)]

    @property
    def others(self) -> list[str]:
        """The changed factors that can't be set back."""
        return [factor for factor in self.changed if factor not in self.factors]

    @property
    def by_hand(self) -> list[tuple[str, str]]:
        """The factors that no fresh run sets back, each with the reason and what you can do instead."""
        old = self.baseline.fingerprint
        known = {
            name: old.get(name) or "the baseline's"
            for name in ("tool_version", "evalhub", "sandbox", "model")
        }
        return [(factor, _BY_HAND[factor].format(**known)) for factor in self.others]

    @property
    def is_possible(self) -> bool:
        """Whether two or more factors changed and one of them can be set back."""
        ready = not self.run.target.is_imported and self.run.target.accepted
        return ready and not self.arms and len(self.changed) > 1 and bool(self.factors)

    @property
    def runs(self) -> int:
        return len(self.factors) + 1

    @property
    def trials(self) -> int:
        return self.runs * self.run.trials

    @property
    def cost_usd(self) -> float | None:
        """The cost by that of the run; None if unknown."""
        return None if self.run.cost_usd is None else self.run.cost_usd * self.runs

    @property
    def is_open(self) -> bool:
        return any(arm.run.is_open for arm in self.arms)

    @cached_property
    def against_baseline(self) -> dict[str, str]:
        """Return each finished fresh run's verdict against the baseline, by factor. Up to three queries for each."""
        finished = [arm for arm in self.arms if arm.run.state == RunState.FINISHED and arm.run.verdict]
        return {
            arm.factor: arm.run.verdict if arm.factor == CONTROL else _compare(self.baseline, arm.run)
            for arm in finished
        }

    @property
    def conclusion(self) -> str:
        """Say which cause the fresh runs point at; empty before they have finished."""
        if not self.arms or self.is_open:
            return ""
        control = next(arm.run for arm in self.arms if arm.factor == CONTROL)
        tried = [arm for arm in self.arms if arm.factor != CONTROL]
        if any(arm.run.state != RunState.FINISHED or not arm.run.verdict for arm in self.arms):
            return "Not every fresh run has results, so they point at nothing. See their pages."
        against = self.against_baseline
        still = [arm.factor for arm in tried if against[arm.factor] == ChangeVerdict.REGRESSED]
        helped = [arm.factor for arm in tried if arm.run.verdict == ChangeVerdict.IMPROVED]
        if alone := [factor for factor in helped if factor not in still]:
            return f"The fresh runs point at: {' and '.join(alone)}. As in the baseline, the results improve."
        if helped:
            return (
                f"There may be more than one cause: with the baseline's {' or '.join(helped)}, the results improve and "
                "still regress against the baseline. Repeat the fresh runs with more trials."
            )
        if control.verdict != ChangeVerdict.REGRESSED:
            return "The fresh run of the same configuration did not regress, so the regression may be chance."
        if self.others and len(still) == len(tried):
            return (
                f"The fresh runs point at: {' or '.join(self.others)}. With the baseline's "
                f"{' or '.join(arm.factor for arm in tried)}, the results still regress."
            )
        return "The fresh runs don't show which cause it is. Repeat them with more trials."


def _compare(before: Run, after: Run) -> str:
    verdict = compare_run_measures(before, after).verdict
    return "" if verdict is None else verdict.value


def separation_of(run: Run) -> Separation | None:
    """Return what can be set apart for a run; None without a baseline. One query."""
    if run.baseline_id is None:
        return None
    wanted = Q(pk=run.baseline_id) | Q(launch__preset=Preset.CAUSES, launch__about=run.pk)
    runs = {each.pk: each for each in Run.objects.filter(wanted).select_related(*RELATED).order_by("pk")}
    baseline = runs.pop(run.baseline_id)
    arms = tuple(
        SeparationArm(CONTROL if each.arm == Arms.CONTROL else each.arm, each) for each in runs.values()
    )
    return Separation(run, baseline, arms)


@transaction.atomic
def request_separation(run_id: int, *, by: User | None) -> list[Run]:
    """Queue the fresh runs that set a run's causes apart, the control first, once. Raises `RequestError`."""
    run = Run.objects.select_for_update(of=("self",)).select_related(*RELATED).get(pk=run_id)
    separation = separation_of(run)
    if separation is None or run.verdict != ChangeVerdict.REGRESSED:
        raise RequestError(f"Run {run.pk} has not regressed, so there are no causes to separate.")
    if separation.arms:
        raise RequestError(
            f"The causes of run {run.pk} are being separated already: run {separation.arms[0].run.pk}."
        )
    if not separation.is_possible:
        raise RequestError(
            f"The causes of run {run.pk} can't be separated: two or more must have changed, and stored configurations "
            "must be able to set one back. Guidance, model, scenarios, judge and target can be."
        )
    request = _request(run, separation.baseline)
    requests = {
        Arms.CONTROL.value: request,
        **{factor: _SET_BACK[factor](request, separation.baseline) for factor in separation.factors},
    }
    planned = [_plan(run, own) for own in requests.values()]
    for each, factor in zip(planned, requests, strict=True):
        each.run.arm = factor
        each.run.target_version = (separation.baseline if factor == "target" else run).target_version
    control, *arms = (each.run for each in planned)
    store_launch(
        launch_of(request, control, by=by, trigger=Trigger.WEB, preset=Preset.CAUSES, about=run), planned
    )
    for arm in arms:
        arm.reference, arm.options = control, {**arm.options, "baseline": str(control.pk)}
        arm.save(update_fields=["reference", "options"])
    audit.append_event(run.project, by, "run.separate", run, runs=[control.pk, *(arm.pk for arm in arms)])
    return [control, *arms]


def _plan(run: Run, request: Request) -> PlannedRun:
    planned = plan(run.project, request)
    if len(planned) != 1:
        raise RequestError(
            f"Run {run.pk} can't be repeated as one run, because its scenarios choose their targets."
        )
    return planned[0]


def _request(run: Run, baseline: Run) -> Request:
    options = with_recommended_judge(run.project, RunOptions.model_validate(run.options))
    keys = list(run.trial_set.values_list("scenario__key", flat=True).order_by().distinct())
    if options.until_decided:
        # Looks gave some scenarios more trials than others; fresh runs get as many in all.
        options = options.without_looks().model_copy(update={"trials": ceil(run.trials / len(keys))})
    return Request(
        suite_versions=[run.suite_version],
        targets=[run.target.name],
        models=_model_names(run.model),
        guidance=[run.guidance] if run.guidance else (),
        selection=Selection(only=tuple(sorted(keys))),
        options=options.model_copy(update={"baseline": str(baseline.pk), "experiment": True}),
        labels={"tool_version": run.tool_version, "branch": run.branch},
    )


def _model_names(model: str) -> Sequence[str]:
    return [model] if model else ()


def _old_scenarios(request: Request, baseline: Run) -> Request:
    version = baseline.suite_version
    keys = set(version.scenario_versions.values_list("scenario__key", flat=True))
    shared = Selection(only=tuple(key for key in request.selection.only if key in keys))
    return replace(request, suite_versions=[version], selection=shared)


def _old_judge(request: Request, baseline: Run) -> Request:
    judge = RunOptions.model_validate(baseline.options).judge_model
    return replace(request, options=request.options.model_copy(update={"judge_model": judge}))


_SET_BACK: dict[str, Callable[[Request, Run], Request]] = {
    "guidance": lambda request, old: replace(request, guidance=[old.guidance] if old.guidance else ()),
    "model": lambda request, old: replace(request, models=_model_names(old.model)),
    "scenarios": _old_scenarios,
    "judge": _old_judge,
    "target": lambda request, old: replace(request, targets=[old.target.name]),
}
"""How a request gets one factor from the baseline; an older definition of the target is set on the stored run."""

_BY_HAND = {
    "tool": "evalhub records the tool's version and doesn't install it. Install {tool_version} on a worker and run the "
    "suite again there.",
    "guidance": "The baseline had no guidance or it was deleted. Upload its text and choose it in a new run.",
    "model": "Both runs asked for the same model and the provider answered with another. Ask for {model} by its full "
    "name in a new run, if the provider still serves it.",
    "scenarios": "Both runs used the same suite version, with other files beside it. Upload the older files and run "
    "them.",
    "judge": "Both runs asked for the same judge, whose definition changed. Restore the older one in your targets "
    "file, import it and judge the run again.",
    "target": "The baseline's definition wasn't stored or can't run here. Restore it in your targets file, import it "
    "and run the suite again.",
    "evalhub": "Workers run one version of evalhub. Install {evalhub} elsewhere and run the suite there; the changelog "
    "says what scores differently.",
    "sandbox": "The sandbox is a worker's, not a run's. Start a worker whose sandbox is {sandbox} "
    "(EVALHUB_SANDBOX) and run the suite again there.",
}
"""Why no fresh run sets a factor back, and what to do instead."""


def _differs(separation: Separation, factor: str) -> bool:
    """Return whether the factor's stored configuration differs, so that a request can choose the old one."""
    run, old = separation.run, separation.baseline
    differing: dict[str, bool] = {
        "guidance": old.guidance_id is not None and old.guidance_id != run.guidance_id,
        "model": old.model != run.model,
        "scenarios": old.suite_version_id != run.suite_version_id,
        "judge": old.options.get("judge_model", "") != run.options.get("judge_model", ""),
        "target": not old.target.is_imported
        and old.target.accepted
        and (old.target_id != run.target_id or None is not old.target_version_id != run.target_version_id),
    }
    return differing[factor]
