"""Compare closed runs with their baselines, and store what the comparison says."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q

from evalhub.teams.models import Project
from evaluators.grading.suite_result import Comparison, compare_passes
from evaluators.statistics.comparability import Reasons
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from runs.compare.baselines import LAST_PASS
from runs.compare.causes import same_fingerprint
from runs.compare.drift import decline_of
from runs.compare.intended_changes import changed_on_purpose, kind_of_regression
from runs.compare.line import OldSide, old_side_of
from runs.compare.measure_changes import PASS, Pool, RunComparison, against_line, compare_pools
from runs.compare.stored_changes import change_json
from runs.db import outbox, statements
from runs.models import Alert, Change, Run, RunMeasure, Trial
from runs.models.comparison import OPEN_ALERTS, AlertKind, Evidence
from runs.models.run import RunState, Trigger
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.results.comparability import outcomes_changed_since
from runs.results.measures import measure_ids
from scenarios.models import Scenario

_LAST_PASS = f"Baseline {LAST_PASS}"
PASS_KEY = ("trial", "pass")
PASS_RATE = Q(scenario=None, measure__layer="trial", measure__name="pass")
"""The change of a run's pass rate."""


def passes(run_id: int) -> dict[str, bool]:
    """Return for each scenario whether it passed, in the order of the suite. One query."""
    return passes_of([run_id])[run_id]


def passes_of(runs: Collection[int]) -> dict[int, dict[str, bool]]:
    """Return what `passes` returns for each of several runs. One query."""
    rows = Trial.objects.filter(run__in=runs, is_retest=False, state=TrialState.FINISHED).order_by("position")
    outcomes: dict[int, dict[str, list[str]]] = {run: {} for run in runs}
    for run, key, outcome in rows.values_list("run", "scenario__key", "outcome"):
        outcomes[run].setdefault(key, []).append(outcome)
    return {run: passed_of(own) for run, own in outcomes.items()}


def passed_of(outcomes: Mapping[str, Iterable[str]]) -> dict[str, bool]:
    """Return for each scenario whether it passed, from the outcomes of its finished trials.

    It passed if at least one trial passed and none failed. Errors and cancelled trials don't count.
    """
    return {key: set(own) - {"error"} == {"pass"} for key, own in outcomes.items()}


def incomparable(before: Run, after: Run) -> dict[str, Reasons]:
    """Return the scenarios of both runs whose outcomes can't be compared, by key, with the parts that changed.

    Two queries, none where both ran the same version of the suite with the same judge.
    """
    return outcomes_changed_since(before, [after])[0]


def comparison_of(run: Run) -> Comparison:
    """Return the changes since the run's baseline, or since its baseline's file; empty without either."""
    if filed := run.options.get("baseline_file"):
        return compare_passes(filed["passed"], passes(run.pk))
    return comparison_between(run.baseline, run) if run.baseline else Comparison()


def comparison_between(before: Run, after: Run) -> Comparison:
    """Return the comparable scenarios that regressed and those that improved."""
    by_run = passes_of([before.pk, after.pk])
    return compare_passes(by_run[before.pk], by_run[after.pk], incomparable(before, after))


def compare_with_baseline(run: Run, *, is_new: bool = False) -> None:
    """Replace the run's baseline, verdict, changes and alert; a new run has none yet. Requires a transaction."""
    options = RunOptions.model_validate(run.options)
    has_no_old_side = options.baseline_file or options.is_old_side or options.is_previous_arm
    side = OldSide(None) if has_no_old_side else old_side_of(run, options.baseline)
    baseline = run.baseline = side.baseline
    if options.baseline == LAST_PASS:
        run.warnings = [
            *(each for each in run.warnings if not each.startswith(_LAST_PASS)),
            _last_pass(baseline),
        ]
    run.verdict, run.configuration_changed, run.old_side = "", False, {}
    run.aa_scenarios = run.aa_differing = None
    if not is_new:
        Change.objects.filter(run=run).delete()
    # A part of a run says nothing about its line.
    if baseline is not None and run.state != RunState.CANCELLED:
        comparison = _compare_with(side, baseline, run)
        run.configuration_changed = not run.is_experiment and bool(changed_on_purpose(baseline, run))
        if comparison.pass_rate is not None and comparison.verdict is not None:
            run.verdict = comparison.verdict.value
            run.old_side = side.stored(regressed=run.verdict == ChangeVerdict.REGRESSED)
            statements.insert(Change, _changes(run, baseline, comparison))
            _count_aa(baseline, run)
    stored = (
        "baseline",
        "warnings",
        "verdict",
        "old_side",
        "configuration_changed",
        "aa_scenarios",
        "aa_differing",
    )
    run.save(update_fields=stored)
    _keep_alert(run, is_new=is_new)
    if side.members and run.verdict and not side.since:
        _keep_drift(run, side.members)


def _last_pass(baseline: Run | None) -> str:
    """Say what the last run that passed is, and what choosing it does to a verdict."""
    if baseline is None:
        return f"{_LAST_PASS}: no earlier run passed every trial, so there is nothing to compare with."
    return (
        f"{_LAST_PASS}: compared with run {baseline.pk}. A baseline that was chosen because it passed makes luck look "
        "like a regression."
    )


def _keep_drift(run: Run, members: Sequence[int]) -> None:
    """Raise an alert for a decline of the line that no single run shows."""
    is_known = run.verdict == ChangeVerdict.REGRESSED or run.is_experiment or run.configuration_changed
    if is_known or (decline := decline_of(run, members)) is None:
        return
    defaults = {"project_id": run.project_id, "kind": AlertKind.DRIFT, "drift": decline}
    alert, is_first = Alert.objects.get_or_create(run=run, defaults=defaults)
    if is_first:
        outbox.record_regression(alert, run)


def _compare_with(side: OldSide, baseline: Run, run: Run) -> RunComparison:
    """Compare a run, with the trials of those pressed before it, with its old side."""
    new = Pool(run, side.again)
    (comparison,) = compare_pools(Pool(baseline), [new])
    return against_line(comparison, side.line, side.reasons, new) if side.line else comparison


def _count_aa(baseline: Run, run: Run) -> None:
    """Count what differs from a baseline of the same fingerprint, where only chance can differ."""
    if not same_fingerprint(baseline.fingerprint, run.fingerprint):
        return
    by_run = passes_of([baseline.pk, run.pk])
    before, after = by_run[baseline.pk], by_run[run.pk]
    shared = before.keys() & after.keys()
    run.aa_scenarios = len(shared)
    run.aa_differing = sum(before[key] != after[key] for key in shared)


def compare_named(run: Run) -> None:
    """Compare again later runs whose request names the run as their baseline. Requires a transaction.

    They may have closed before it, as arms of its launch.
    """
    finished = Run.objects.filter(state=RunState.FINISHED, error="").select_related("project")
    for later in finished.filter(project=run.project_id, pk__gt=run.pk, options__baseline=str(run.pk)):
        compare_with_baseline(later)


def _keep_alert(run: Run, *, is_new: bool) -> None:
    """Raise an alert for a regression of the line; take back one that nobody has triaged otherwise."""
    kind = _alert_kind(run)
    if kind is not None and not _is_known(run):
        # A project that confirms by itself notifies of what is confirmed; see `runs.launch.confirmation`.
        confirms = run.project.confirm_alerts and outbox.is_recent(run) and run.trigger != Trigger.IMPORT
        evidence = Evidence.CONFIRMING if confirms else Evidence.SUSPECTED
        defaults = {"project_id": run.project_id, "kind": kind, "evidence": evidence}
        alert, is_first = Alert.objects.get_or_create(run=run, defaults=defaults)
        if is_first and not confirms:
            outbox.record_regression(alert, run)
        elif alert.kind != kind and alert.first_triaged is None:
            Alert.objects.filter(pk=alert.pk).update(kind=kind, drift={})
    elif not is_new:
        Alert.objects.filter(run=run, first_triaged=None).delete()


def _alert_kind(run: Run) -> AlertKind | None:
    """Return the kind of alert that a compared run raises; None without one."""
    if run.verdict != ChangeVerdict.REGRESSED or run.is_experiment or run.baseline is None:
        return None
    return kind_of_regression(run.baseline, run)


def _is_known(run: Run) -> bool:
    """Return whether undecided alerts of the line say all that broke in a run that is red since an earlier one."""
    if not run.old_side.get("since"):
        return False
    named = Alert.objects.filter(
        run__suite=run.suite_id,
        run__target=run.target_id,
        run__model=run.model,
        run__lt=run.pk,
        state__in=OPEN_ALERTS,
    )
    rows = Change.objects.filter(PASS_RATE, run__in=[run.pk, *named.values_list("run", flat=True)])
    broke = {pk: set(detail.get("broke", ())) for pk, detail in rows.values_list("run", "detail")}
    return broke.pop(run.pk, set()) <= set().union(*broke.values())


def _changes(run: Run, baseline: Run, comparison: RunComparison) -> list[dict[str, Any]]:
    """Return the rows of a comparison: one for each measure, and one for each scenario whose pass rate changed."""
    measures = [*comparison.headline, *comparison.others]
    ids = measure_ids([_layer_and_name(change) for change in measures])
    left_out = {key: list(why) for key, why in comparison.not_comparable.items()}
    rows = [
        _row(run, baseline, ids[_layer_and_name(change)], change)
        for change in measures
        if change.scenarios or change.rule.name == PASS
    ]
    for row in rows:
        if left_out and row["measure"] == ids[PASS_KEY]:
            row["detail"]["not_comparable"] = left_out
    moved = {key: change for key, change in comparison.scenarios.items() if change.effect}
    keys = dict(Scenario.objects.filter(suite=run.suite_id, key__in=list(moved)).values_list("key", "pk"))
    scenario_rows = [
        _row(run, baseline, ids[PASS_KEY], change, keys[key]) for key, change in moved.items() if key in keys
    ]
    lost = [row for row in scenario_rows if (row["after"] or 0.0) < (row["before"] or 0.0)]
    if run.verdict == ChangeVerdict.REGRESSED and lost:
        since = failing_since(run, {row["scenario"] for row in lost})
        for row in lost:
            row["detail"]["since"] = since.get(row["scenario"])
    return rows + scenario_rows


def _row(
    run: Run, baseline: Run, measure: int, change: MeasureChange, scenario: int | None = None
) -> dict[str, Any]:
    return {
        "run": run.pk,
        "baseline": baseline.pk,
        "measure": measure,
        "scenario": scenario,
        "verdict": change.verdict.value,
        "before": change.before,
        "after": change.after,
        "detail": change_json(change),
    }


def _layer_and_name(change: MeasureChange) -> tuple[str, str]:
    layer, _, name = change.rule.name.partition("/")
    return layer, name


def compare_again(project: Project) -> int:
    """Compare every finished run of a project, oldest first; return how many. One transaction for each run."""
    keys = list(
        Run.objects.filter(project=project, state=RunState.FINISHED)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    for key in keys:
        with transaction.atomic():
            compare_with_baseline(Run.objects.select_related("project").get(pk=key))
    return len(keys)


HISTORY_RUNS = 100
"""Runs that `failing_since` reads at once."""


def failing_since(run: Run, scenarios: Collection[int]) -> dict[int, int]:
    """Return for each scenario that lost trials in a run the first run of its series of failures.

    The series is of the run's target and model, and is read back to the last run in which the scenario passed.
    Two queries for every `HISTORY_RUNS` runs.
    """
    since: dict[int, int] = {}
    unfinished = {*scenarios}
    series = Run.objects.filter(suite=run.suite_id, target=run.target_id, model=run.model)
    latest = run.pk
    while unfinished:
        earlier = series.filter(pk__lte=latest).order_by("-pk").values_list("pk", flat=True)
        runs = list(earlier[:HISTORY_RUNS])
        if not runs:
            break
        rows = RunMeasure.objects.filter(
            run__in=runs, scenario__in=unfinished, measure__layer="trial", measure__name="pass"
        )
        for scenario, key, mean in rows.order_by("-run_id").values_list("scenario", "run", "mean"):
            if scenario not in unfinished:
                continue
            if mean < 1.0:
                since[scenario] = key
            elif key != run.pk:
                unfinished.discard(scenario)
        latest = runs[-1] - 1
    return since
