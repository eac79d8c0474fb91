"""A closed run against its baseline: which scenarios went from passed to failed, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from evaluators.suite_result import Comparison, compare_passes
from runs.baselines import baseline_of
from runs.models import Alert, Change, Run, RunMeasure, Trial
from runs.models.comparison import Verdict
from runs.models.trial import TrialState
from runs.options import RunOptions
from runs.summaries.measures import measure_id

PASS = ("trial", "pass")
_GRAVEST_FIRST = (Verdict.REGRESSED, Verdict.IMPROVED)


def passes(run_id: int) -> dict[str, bool]:
    """Return for each scenario whether it passed, in the order of the suite. One query."""
    rows = Trial.objects.filter(run=run_id, state=TrialState.FINISHED).order_by("position")
    outcomes: dict[str, list[str]] = {}
    for key, outcome in rows.values_list("scenario__key", "outcome"):
        outcomes.setdefault(key, []).append(outcome)
    return passed_of(outcomes)


def passed_of(outcomes: Mapping[str, Iterable[str]]) -> dict[str, bool]:
    """Return for each scenario whether it passed, from the outcomes of its trials that finished.

    It did when every trial that is no error passed, and there was one. Cancelled trials say nothing.
    """
    return {key: set(found) - {"error"} == {"pass"} for key, found in outcomes.items()}


def comparison_of(run: Run) -> Comparison:
    """Return what changed against the run's baseline; nothing without one."""
    return compare_passes(passes(run.baseline_id), passes(run.pk)) if run.baseline_id else Comparison()


def compare_with_baseline(run: Run) -> None:
    """Write the run's baseline, its changes and its alert anew. The caller holds the transaction."""
    choice = RunOptions.model_validate(run.options).baseline
    baseline = baseline_of(run, choice)
    run.baseline = baseline
    run.save(update_fields=["baseline"])
    Change.objects.filter(run=run).delete()
    if baseline is None:
        return
    regressed = _write_changes(run, baseline)
    if regressed:
        Alert.objects.get_or_create(run=run, defaults={"project_id": run.project_id})
    else:
        Alert.objects.filter(run=run, first_triaged=None).delete()


def _write_changes(run: Run, baseline: Run) -> bool:
    """Store a change for each scenario whose verdict differs, and one of the whole; True when any is a regression.

    Rates are over trials that are no errors, so that a scenario of which only errors are left has no verdict.
    """
    measure = measure_id(*PASS)
    before, after = _rates(baseline, measure), _rates(run, measure)
    both = after.keys() & before.keys()
    changes = [
        Change(
            run=run,
            baseline=baseline,
            measure_id=measure,
            scenario_id=scenario,
            verdict=Verdict.REGRESSED if before[scenario] == 1.0 else Verdict.IMPROVED,
            before=before[scenario],
            after=after[scenario],
        )
        for scenario in both
        if (before[scenario] == 1.0) != (after[scenario] == 1.0)
    ]
    verdicts = {change.verdict for change in changes}
    if both:
        whole = Change(
            run=run,
            baseline=baseline,
            measure_id=measure,
            verdict=next((each for each in _GRAVEST_FIRST if each in verdicts), Verdict.SAME),
            before=fmean(before[scenario] for scenario in both),
            after=fmean(after[scenario] for scenario in both),
        )
        changes.append(whole)
    Change.objects.bulk_create(changes)
    return Verdict.REGRESSED in verdicts


def _rates(run: Run, measure: int) -> Mapping[int, float]:
    rows = RunMeasure.objects.filter(run=run, measure=measure).exclude(scenario=None)
    return dict(rows.values_list("scenario_id", "mean"))
