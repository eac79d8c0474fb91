"""Confirm alerts: which scenarios are affected, and what the fresh trials say once their runs are closed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from evalhub.lib.numbers import counted
from evaluators.statistics.comparability import parts_of
from evaluators.statistics.confirmation import CONCLUSIVE, FreshTest, Suspected, Values, confirm_measures
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange, MeasureRule, Sample
from runs.compare.measure_changes import HEADLINE, LAYER_1
from runs.compare.stored_changes import stored_changes
from runs.db import outbox
from runs.models import Alert, Launch, Run, RunMeasure
from runs.models.comparison import Evidence
from runs.models.run import OPEN, RunState
from runs.results.comparability import parts_changed_since
from runs.results.counting import counted_by_events
from runs.results.measures import REPORTED, label_of_key
from runs.results.rollups import trial_values
from scenarios.models import Scenario

RECENT = 20
"""Earlier runs of the line that the fresh trials are compared with at most."""
TOO_THIN = "Baseline too thin: the line has no earlier comparable run beside the baseline itself."


@dataclass(frozen=True)
class Suspicion:
    """What an alert's regression is about."""

    changes: tuple[MeasureChange, ...]
    """The headline measures that regressed, the pass rate first; or the pass rate, of which scenarios broke."""
    before: Mapping[str, Sample]
    """The first measure in the baseline, by the key of each scenario that got worse."""
    drop: float
    """By how much it got worse over these scenarios, 0 to 1."""

    @property
    def suspected(self) -> Suspected:
        """What fresh trials are to confirm. Requires a change."""
        return Suspected(self.changes[0].rule, list(self.before.values()), self.drop, len(self.changes))


def suspicion_of(run: Run) -> Suspicion:
    """Return what regressed in a run with an alert. Two queries."""
    changes = tuple(
        change
        for change in stored_changes(run.pk)
        if change.rule.name in HEADLINE and (change.verdict is ChangeVerdict.REGRESSED or change.broke)
    )
    means = _means(run, [each.rule.name for each in changes])
    worse = [key for key, each in means.items() if any(_is_worse(change, key, *each) for change in changes)]
    first = changes[0].rule.name if changes else ""
    before = {key: means[key][0].get(first, Sample(1, 1.0)) for key in worse}
    drops = [abs(before[key].mean - means[key][1].get(first, before[key]).mean) for key in worse]
    return Suspicion(changes, before, sum(drops) / len(drops) if drops else 0.0)


_Means = dict[str, Sample]


def _means(run: Run, names: Sequence[str]) -> dict[str, tuple[_Means, _Means]]:
    """Return each measure in the baseline and in the run, by scenario key."""
    sides = [run, *([run.baseline] if run.baseline else [])]
    by_events = counted_by_events({each.pk: each.counting for each in sides})
    rows = RunMeasure.objects.filter(run__in=[each.pk for each in sides]).exclude(scenario=None)
    means: dict[str, tuple[_Means, _Means]] = {}
    columns = ("run", "scenario__key", "measure__layer", "measure__name", "n", "mean", "m2")
    for pk, key, layer, name, *sample in rows.order_by("scenario__key").values_list(*columns):
        if layer in (LAYER_1, REPORTED) and f"{LAYER_1}/{name}" in names:
            if (pk in by_events) != (layer == REPORTED):
                continue
            layer = LAYER_1
        if f"{layer}/{name}" in names:
            means.setdefault(key, ({}, {}))[pk == run.pk][f"{layer}/{name}"] = Sample(*sample)
    return means


def _is_worse(change: MeasureChange, key: str, before: _Means, after: _Means) -> bool:
    name = change.rule.name
    if name not in before or name not in after:
        return False
    if change.verdict is not ChangeVerdict.REGRESSED:
        return key in change.broke
    sign = -1 if change.rule.better == "lower" else 1
    return sign * (after[name].mean - before[name].mean) < 0


def conclude(launch_id: int) -> None:
    """Store what a confirmation's fresh trials say, once its runs are closed. Requires a transaction."""
    alerts = Alert.objects.select_for_update().filter(confirmation=launch_id, evidence=Evidence.CONFIRMING)
    alert = alerts.first()
    if alert is None or Run.objects.filter(launch=launch_id, state__in=OPEN).exists():
        return
    launch = Launch.objects.get(pk=launch_id)
    runs = {run.pk: run for run in launch.runs.all()}
    _store(alert, *_result(alert, runs[launch.request["new"]], runs.get(launch.request["old"] or 0)))


def _store(alert: Alert, evidence: Evidence, reason: str, tests: Sequence[FreshTest] = ()) -> None:
    alert.evidence, alert.reason, alert.fresh = evidence, reason, [test_json(each) for each in tests]
    if evidence is Evidence.NOT_CONFIRMED and tests and _could_decide(tests):
        alert.decided = alert.decided or timezone.now()
    alert.save(update_fields=["evidence", "reason", "fresh", "decided"])
    if evidence is Evidence.CONFIRMED or (evidence is Evidence.NOT_CONFIRMED and not _could_decide(tests)):
        outbox.record_confirmation(alert)


def _could_decide(tests: Sequence[FreshTest]) -> bool:
    """Return whether fresh trials would have confirmed a true regression."""
    powers = [each.power for each in tests if each.power is not None]
    return bool(tests) and min(powers, default=1.0) >= CONCLUSIVE


def _result(alert: Alert, new: Run, old: Run | None) -> tuple[Evidence, str, Sequence[FreshTest]]:
    if any(each.state == RunState.CANCELLED for each in (new, old) if each):
        return Evidence.SUSPECTED, "The confirmation was cancelled.", ()
    if new.error:
        return Evidence.NOT_CONFIRMED, f"The new configuration can't run any more: {new.error}", ()
    run = Run.objects.select_related("project", "baseline").get(pk=alert.run_id)
    suspicion = suspicion_of(run)
    rules = [each.rule for each in suspicion.changes]
    if old is not None and not old.error:
        measured = _join_sides(rules, _values([old.pk], rules), _values([new.pk], rules))
        against = "the old configuration"
    else:
        earlier = list(earlier_runs(run))
        by_events = bool(counted_by_events({each.pk: each.counting for each in (*earlier, new)}))
        before = _earlier_values(new, earlier, rules, by_events=by_events)
        if not any(before.values()):
            return Evidence.NOT_CONFIRMED, TOO_THIN, ()
        measured = _join_sides(rules, before, _values([new.pk], rules, by_events=by_events))
        against = f"{len(earlier)} earlier run{'s' if len(earlier) > 1 else ''}"
    tests = confirm_measures(measured)
    confirmed = any(each.confirms for each in tests)
    if not confirmed and _is_cut_short([each for each in (new, old) if each]):
        # Without its tests, so that it can be confirmed again.
        return Evidence.NOT_CONFIRMED, "The budget was reached before the fresh trials could decide.", ()
    if not tests:
        return (
            Evidence.NOT_CONFIRMED,
            "No fresh trial could be compared: they ended as errors or were cancelled.",
            (),
        )
    tests = _with_power(tests, suspicion, measured)
    is_alone = old is None or bool(old.error)
    fresh = tests[0].trials[1] if is_alone else sum(tests[0].trials)
    shown = f"Fresh trials against {against}: {'; '.join(map(_sentence, tests))}."
    if confirmed:
        return Evidence.CONFIRMED, shown, tests
    return Evidence.NOT_CONFIRMED, f"{_without_power(tests, suspicion, fresh)}{shown}", tests


_Measured = Sequence[tuple[MeasureRule, Values, Values]]


def _with_power(tests: Sequence[FreshTest], suspicion: Suspicion, measured: _Measured) -> list[FreshTest]:
    """Return the tests, the first measure's with the share of cases in which such trials confirm what is expected."""
    rule, before, after = measured[0]
    counts = {key: (len(before[key]), len(after[key])) for key in after if after[key] and before.get(key)}
    samples = {key: sample for key, sample in suspicion.before.items() if key in counts}
    if not samples or tests[0].measure != rule.name:
        return list(tests)
    suspected = replace(suspicion.suspected, before=list(samples.values()))
    power = suspected.power([counts[key][0] for key in samples], [counts[key][1] for key in samples])
    return [replace(tests[0], power=power), *tests[1:]]


def _without_power(tests: Sequence[FreshTest], suspicion: Suspicion, fresh: int) -> str:
    """Return that so few fresh trials could not confirm it, as a sentence with a space behind; empty if they could."""
    power = tests[0].power
    if power is None or power >= CONCLUSIVE:
        return ""
    return (
        f"Could not be confirmed with {counted(fresh, 'trial')}: they find a change of"
        f" {suspicion.suspected.expected * 100:.0f} points in {power * 100:.0f} % of cases. "
    )


def _is_cut_short(arms: Sequence[Run]) -> bool:
    """Return whether the budget cancelled trials."""
    limit = arms[0].max_usd
    spent = sum(each.cost_usd or 0.0 for each in arms)
    return limit is not None and spent >= limit and any(each.cancelled for each in arms)


def earlier_runs(run: Run) -> QuerySet[Run]:
    """Return the line's newest runs before this one that raised no alert, without the baseline.

    The baseline itself took part in raising the suspicion.
    """
    same = Run.objects.filter(
        suite=run.suite_id, target=run.target_id, model=run.model, guidance=run.guidance_id
    )
    earlier = same.filter(pk__lt=run.pk, is_experiment=False, state=RunState.FINISHED, error="", alert=None)
    return earlier.exclude(pk=run.baseline_id or 0).order_by("-pk")[:RECENT]


def earlier_trials(run: Run, name: str, keys: Iterable[str]) -> dict[str, int]:
    """Return how many trials of a measure the earlier runs have, by the key of each of these scenarios. Two queries."""
    counts = dict.fromkeys(keys, 0)
    layer, measure = _layer_and_name(name)
    rows = RunMeasure.objects.filter(
        run__in=list(earlier_runs(run).values_list("pk", flat=True)),
        scenario__key__in=list(counts),
        measure__layer__in=(layer, REPORTED) if layer == LAYER_1 else (layer,),
        measure__name=measure,
    )
    for key, n in rows.values_list("scenario__key", "n"):
        counts[key] += n
    return counts


_ByMeasure = dict[str, dict[str, list[float]]]


def _values(runs: Sequence[int], rules: Sequence[MeasureRule], *, by_events: bool = False) -> _ByMeasure:
    """Return each measure's values by scenario key; `by_events` is that of `trial_values`."""
    by_measure = trial_values(runs, [_layer_and_name(rule.name) for rule in rules], by_events=by_events)
    pks = {pk for scenarios in by_measure.values() for pk in scenarios}
    keys = dict(Scenario.objects.filter(pk__in=pks).values_list("pk", "key"))
    return {
        "/".join(name): {keys[pk]: values for pk, values in scenarios.items()}
        for name, scenarios in by_measure.items()
    }


def _earlier_values(
    new: Run, earlier: Iterable[Run], rules: Sequence[MeasureRule], *, by_events: bool
) -> _ByMeasure:
    """Return the measures' values in earlier runs, of the scenarios that can be compared with the fresh ones."""
    pooled: _ByMeasure = {rule.name: {} for rule in rules}
    for earlier_run in earlier:
        why = parts_changed_since(earlier_run, [new], strict=not by_events)[0]
        for name, scenarios in _values([earlier_run.pk], rules, by_events=by_events).items():
            parts = parts_of(*_layer_and_name(name))
            for key, values in scenarios.items():
                if not parts & set(why.get(key, ())):
                    pooled[name].setdefault(key, []).extend(values)
    return pooled


def _join_sides(rules: Sequence[MeasureRule], before: _ByMeasure, after: _ByMeasure) -> _Measured:
    return [(rule, before.get(rule.name, {}), after.get(rule.name, {})) for rule in rules]


def _layer_and_name(full: str) -> tuple[str, str]:
    layer, _, name = full.partition("/")
    return layer, name


def _sentence(test: FreshTest) -> str:
    sizes = f"{label_of_key(test.measure)} {test.before * 100:.0f} % → {test.after * 100:.0f} %"
    return f"{sizes} ({test.trials[0]} and {test.trials[1]} trials, one-sided p = {test.corrected:.2g})"


def test_json(test: FreshTest) -> dict[str, Any]:
    """Return a test as it is stored and as REST answers it; means from 0 to 1."""
    return {
        "measure": test.measure,
        "scenarios": test.scenarios,
        "trials": list(test.trials),
        "before": test.before,
        "after": test.after,
        "test": test.test.value,
        "p": test.p,
        "p_corrected": test.corrected,
        "confirms": test.confirms,
        "power": test.power,
    }


def overdue_confirmations() -> list[int]:
    """Return the launches whose runs are closed while their alert is still being confirmed. One query."""
    confirming = Alert.objects.filter(evidence=Evidence.CONFIRMING).exclude(confirmation=None)
    still_open = Run.objects.filter(state__in=OPEN, launch__confirms__evidence=Evidence.CONFIRMING)
    done = confirming.exclude(confirmation__in=still_open.values("launch"))
    return [pk for pk in done.values_list("confirmation", flat=True) if pk is not None]


def waiting_alerts() -> list[Alert]:
    """Return the alerts that are to be confirmed by themselves and whose fresh trials were not requested yet."""
    waiting = Alert.objects.filter(evidence=Evidence.CONFIRMING, confirmation=None)
    return list(waiting.order_by("pk")[:10])
