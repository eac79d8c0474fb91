"""Compare closed runs with their baselines and store the result, again after a run's scores changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from django.db.models import Count, Q

from evaluators.grading.evaluate import CompositeWeights, compute_composite, decide_outcome
from evaluators.grading.suite_result import Comparison, compare_passes
from evaluators.model import Score
from evaluators.statistics.comparability import Reasons
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange, Sample
from evaluators.statistics.retest import Passes, RetestOutcome, has_fallen
from runs.compare.amounts import amounts_against_line, worse_amounts
from runs.compare.baselines import LAST_PASS
from runs.compare.differences import changed_on_purpose
from runs.compare.line import ALONE, Reference, reference_of
from runs.compare.looks import Extension
from runs.compare.lost_scenarios import change_json
from runs.compare.measure_changes import (
    PASS,
    RunComparison,
    against_line,
    compare_with_first,
    read_samples,
    spreads_of,
    with_broken,
)
from runs.compare.raised_alerts import is_red, keep_alerts
from runs.db import statements
from runs.errors import RequestError
from runs.models import Change, Run, RunMeasure, Trial
from runs.models.comparison import AlertKind
from runs.models.run import Arm, RunState
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.results.comparability import outcomes_changed_since
from runs.results.measures import measure_ids
from runs.results.rollups import write_rollups
from runs.results.search.trial_search import index_trials
from scenarios.models import Scenario

_LAST_PASS = f"Baseline {LAST_PASS}"
PASS_KEY = ("trial", "pass")


def read_passes(run_id: int) -> dict[str, bool]:
    """Return for each scenario whether it passed, in the order of the suite. One query."""
    return passes_of([run_id])[run_id]


def passes_of(runs: Collection[int]) -> dict[int, dict[str, bool]]:
    """Return what `read_passes` returns for each of several runs. One query."""
    rows = Trial.objects.filter(run__in=runs, round=0, state=TrialState.FINISHED).order_by("position")
    outcomes: dict[int, dict[str, list[str]]] = {run: {} for run in runs}
    for run, key, each in rows.values_list("run", "scenario__key", "outcome"):
        outcomes[run].setdefault(key, []).append(each)
    return {run: passed_of(own) for run, own in outcomes.items()}


def passed_of(outcomes: Mapping[str, Iterable[str]]) -> dict[str, bool]:
    """Return for each scenario whether it passed, from the outcomes of its finished trials.

    It passed if at least one trial passed and none failed. Errors and cancelled trials don't count.
    """
    return {key: set(own) - {"error"} == {"pass"} for key, own in outcomes.items()}


def find_incomparable(before: Run, after: Run) -> dict[str, Reasons]:
    """Return the scenarios of both runs whose outcomes can't be compared, by key, with the parts that changed.

    Two queries, none where both ran the same version of the suite with the same judge.
    """
    return outcomes_changed_since(before, [after])[0]


def comparison_of(run: Run) -> Comparison:
    """Return the changes since the run's baseline, or since its baseline's file; empty without either."""
    if filed := run.options.get("baseline_file"):
        return compare_passes(filed["passed"], read_passes(run.pk))
    return comparison_between(run.baseline, run) if run.baseline else Comparison()


def comparison_between(before: Run, after: Run) -> Comparison:
    """Return the comparable scenarios that regressed and those that improved."""
    by_run = passes_of([before.pk, after.pk])
    return compare_passes(by_run[before.pk], by_run[after.pk], find_incomparable(before, after))


def compare_with_baseline(run: Run, *, is_new: bool = False) -> None:
    """Replace the run's baseline, verdict, changes and alerts; a new run has none yet. Requires a transaction."""
    options = RunOptions.model_validate(run.options)
    compares_nothing = options.baseline_file or run.arm in (Arm.REFERENCE, Arm.PREVIOUS)
    side = Reference(None) if compares_nothing else reference_of(run, options.baseline)
    baseline = run.baseline = side.baseline
    if options.baseline == LAST_PASS:
        run.warnings = [
            *(each for each in run.warnings if not each.startswith(_LAST_PASS)),
            _last_pass(baseline),
        ]
    run.verdict, run.configuration_changed, run.old_side = "", False, {}
    if not is_new:
        Change.objects.filter(run=run).delete()
    comparison = None
    # A part of a run says nothing about its line.
    if baseline is not None and run.state != RunState.CANCELLED:
        worse = _held_that_look_worse(side, baseline, run)
        comparison = _compare_with(side, baseline, run, worse)
        run.configuration_changed = not run.is_experiment and bool(changed_on_purpose(baseline, run))
        if comparison.pass_rate is not None and comparison.verdict is not None:
            run.verdict = comparison.verdict.value
            red = worse_amounts(comparison.others) | ({AlertKind.REGRESSION} if is_red(comparison) else set())
            run.old_side = side.stored(
                red=red, worse=worse, since=side.since if run.verdict == ChangeVerdict.REGRESSED else None
            )
            statements.insert(Change, _changes(run, baseline, comparison))
    run.save(update_fields=["baseline", "warnings", "verdict", "old_side", "configuration_changed"])
    keep_alerts(run, side, comparison, is_new=is_new)


def _last_pass(baseline: Run | None) -> str:
    """Name the last run that passed, and warn of the bias of choosing it."""
    if baseline is None:
        return f"{_LAST_PASS}: no earlier run passed every trial, so there is nothing to compare with."
    return (
        f"{_LAST_PASS}: compared with run {baseline.pk}. A baseline that was chosen because it passed makes luck look "
        "like a regression."
    )


def _held_that_look_worse(side: Reference, baseline: Run, run: Run) -> list[str]:
    """Return the scenarios of open alerts that look worse in a run than before. One query, none without them."""
    if not side.held:
        return []
    old = side.line or (baseline,)
    samples = read_samples([run, *old], [PASS]).get(PASS, {})
    tonight = samples.get(run.pk, {})
    return [
        key
        for key in side.held
        if key in tonight
        and has_fallen(
            _passes([tonight[key]]),
            _passes(own[key] for own in map(samples.get, (each.pk for each in old)) if own and key in own),
        )
    ]


def _passes(samples: Iterable[Sample]) -> Passes:
    known = list(samples)
    return Passes(sum(round(each.mean * each.n) for each in known), sum(each.n for each in known))


def _compare_with(side: Reference, baseline: Run, run: Run, worse: Sequence[str]) -> RunComparison:
    """Compare a run with its reference. Scenarios that fresh trials or open alerts name may have regressed."""
    # Against a line these runs are its reference already.
    spreads = spreads_of(side.earlier, run) if side.is_alone else {}
    (comparison,) = compare_with_first(baseline, [run], spreads=spreads)
    if side.line:
        comparison = amounts_against_line(against_line(comparison, side.earlier, run), side, run)
    return with_broken(comparison, [*run.find_retested(RetestOutcome.NAMED), *worse])


def compare_chosen(base: Run, new: Run, extensions: Sequence[Extension] = ()) -> RunComparison:
    """Compare two runs that somebody chose. Runs that did not run in turn are judged by their line, too.

    At most ten queries more than `compare_with_first`, none for runs of one launch.
    """
    in_turn = base.launch_id == new.launch_id
    spreads = {} if in_turn else spreads_of(reference_of(new, str(base.pk)).earlier, new)
    return compare_with_first(base, [new], spreads=spreads, extensions=extensions)[0]


def compare_named(run: Run) -> None:
    """Compare again later runs whose request names the run as their baseline. Requires a transaction.

    They may have closed before it, as arms of its launch.
    """
    finished = Run.objects.filter(state=RunState.FINISHED, error="").select_related("project")
    for later in finished.filter(project=run.project_id, pk__gt=run.pk, options__baseline=str(run.pk)):
        compare_with_baseline(later)


def _changes(run: Run, baseline: Run, comparison: RunComparison) -> list[dict[str, Any]]:
    """Return the rows of a comparison: one for each measure, and one for each scenario whose pass rate changed."""
    measures = [*comparison.headline, *comparison.others]
    ids = measure_ids([_layer_and_name(change) for change in measures])
    left_out = {key: list(why) for key, why in comparison.not_comparable.items()}
    rows = [
        _row(run, baseline, ids[_layer_and_name(change)], change)
        for change in measures
        if change.scenarios or change.measure == PASS
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
    layer, _, name = change.measure.partition("/")
    return layer, name


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


LAYERS = ("gates", "assertions", "evaluators", "judge")
"""Kinds of errors that come from scores, so that new scores can remove them."""


def lock_closed_run(run_id: int) -> Run:
    """Return a closed run, locked until the transaction ends. Raises `RequestError` while it is open."""
    run = Run.objects.select_for_update(of=("self",)).select_related("project", "suite").get(pk=run_id)
    if run.is_open:
        raise RequestError(f"Run {run_id} is in progress. Change its scores after it has finished.")
    return run


def scores_from(rows: Iterable[Any]) -> tuple[Score, ...]:
    """Return stored scores as values."""
    return tuple(msgspec.convert(row, Score, strict=False) for row in rows)


def outcome_of(trial: Trial, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns that follow from these scores: outcome, composite and error."""
    scores = scores_from(rows)
    decided = decide_outcome(scores)
    weights = trial.scenario_version.content.get("criteria", {}).get("composite")
    number, _ = compute_composite(
        CompositeWeights.model_validate(weights) if weights else None, scores, decided
    )
    broken = next((score for score in scores if score.error), None)
    errors = " ".join(dict.fromkeys(score.error for score in scores if score.error))
    return {
        "outcome": decided,
        "composite": number,
        "error": errors,
        "error_kind": broken.layer if broken else "",
    }


def can_change_outcome(trial: Trial) -> bool:
    """Return whether new scores decide the trial's outcome: it has not ended by an error of the agent."""
    is_open = trial.state != TrialState.FINISHED
    return not is_open and (not trial.error_kind or trial.error_kind in LAYERS)


def store_scores(trial: Trial, rows: Sequence[dict[str, Any]]) -> None:
    """Replace a trial's scores and what follows from them. Requires a transaction; call `recompute` after it."""
    values = outcome_of(trial, rows)
    trial.scores = list(rows)
    for name, value in values.items():
        setattr(trial, name, value)
    trial.save(update_fields=["scores", *values])


def recompute(run: Run, trials: Sequence[int]) -> None:
    """Recount a closed run and rewrite rollups, digest, verdicts and search entries. Requires a transaction.

    Later runs that are compared with it alone get new verdicts too; those of a line keep theirs, and their pages say so.
    """
    counted = Trial.objects.filter(run=run, round=0, state=TrialState.FINISHED).aggregate(
        passed=Count("pk", filter=Q(outcome="pass")),
        failed=Count("pk", filter=Q(outcome="fail")),
        errors=Count("pk", filter=Q(outcome="error")),
    )
    for name, number in counted.items():
        setattr(run, name, number)
    decided = (("failed", "fail"), ("errors", "error"), ("passed", "pass"))
    run.outcome = next((word for name, word in decided if counted[name]), "")
    run.save(update_fields=[*counted, "outcome"])
    write_rollups(run)
    compare_with_baseline(run)
    compare_named(run)
    later = Run.objects.filter(ALONE, baseline=run, state=RunState.FINISHED, pk__gt=run.pk)
    for later_run in later.select_related("project").order_by("pk"):
        compare_with_baseline(later_run)
    index_trials(trials)
