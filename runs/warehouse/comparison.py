"""Compare a closed run with its baseline: which scenarios regressed or improved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from django.db.models import QuerySet

from evaluators.comparability import Reasons, Standard, not_comparable
from evaluators.suite_result import Comparison, compare_passes
from runs.models import Alert, Change, Run, RunMeasure, Trial
from runs.models.comparison import Verdict
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.warehouse.baselines import baseline_of
from runs.warehouse.measures import measure_ids
from scenarios.differences import PARTS, standard
from scenarios.models import Scenario, SuiteEntry

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

    It passed if at least one trial passed and none failed. Errors and cancelled trials don't count.
    """
    return {key: set(found) - {"error"} == {"pass"} for key, found in outcomes.items()}


def incomparable(before: Run, after: Run) -> dict[str, Reasons]:
    """Return the scenarios of both runs whose task, gates, judge or rubric changed, by key, with which of them did.

    Two queries, none where both ran the same version of the suite.
    """
    if before.suite_version_id == after.suite_version_id:
        return {}
    return not_comparable(_standards(before.suite_version_id), _standards(after.suite_version_id))


def _standards(suite_version: int) -> dict[str, Standard]:
    return {key: standard(hashes) for key, *hashes in _entries(suite_version)}


def _entries(suite_version: int) -> QuerySet[SuiteEntry, tuple[str, ...]]:
    columns = (f"scenario_version__{name}" for name in ("scenario__key", *PARTS))
    return SuiteEntry.objects.filter(suite_version=suite_version).order_by("position").values_list(*columns)


def comparison_of(run: Run) -> Comparison:
    """Return the changes since the run's baseline, none without one."""
    return comparison_between(run.baseline, run) if run.baseline else Comparison()


def comparison_between(before: Run, after: Run) -> Comparison:
    """Return the comparable scenarios that regressed and those that improved."""
    return compare_passes(passes(before.pk), passes(after.pk), incomparable(before, after))


def compare_with_baseline(run: Run) -> None:
    """Replace the run's baseline, changes and alert. Requires a transaction."""
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

    Rates are over trials that are no errors, so that a scenario of which only errors are left has no verdict. Scenarios
    whose task, gates, judge or rubric changed have none either, and the change of the whole names them.
    """
    measure = measure_ids([PASS])[PASS]
    before, after = _rates(baseline, measure), _rates(run, measure)
    left_out = incomparable(baseline, run)
    both = (after.keys() & before.keys()) - _keys_of(run, left_out)
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
            detail={"not_comparable": left_out} if left_out else {},
        )
        changes.append(whole)
    Change.objects.bulk_create(changes)
    return Verdict.REGRESSED in verdicts


def _keys_of(run: Run, keys: Iterable[str]) -> set[int]:
    """Return the scenarios of the run's suite with these keys."""
    found = (
        Scenario.objects.filter(suite=run.suite_id, key__in=list(keys)) if keys else Scenario.objects.none()
    )
    return set(found.values_list("pk", flat=True))


def _rates(run: Run, measure: int) -> Mapping[int, float]:
    rows = RunMeasure.objects.filter(run=run, measure=measure).exclude(scenario=None)
    return dict(rows.values_list("scenario_id", "mean"))
