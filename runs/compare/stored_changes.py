"""Read and write changes as a run stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.statistics.measure_change import (
    ChangeVerdict,
    ComparisonTest,
    MeasureChange,
    MeasureRule,
    Scale,
)
from runs.compare.measure_changes import HEADLINE, PASS
from runs.models import Change


def change_json(change: MeasureChange) -> dict[str, Any]:
    """Return a change as JSON: sizes from 0 to 1, shares of the value before on the relative scale."""
    return {
        "measure": change.rule.name,
        "verdict": change.verdict.value,
        "scale": change.rule.scale.value,
        "better_is": change.rule.better,
        "is_outcome": change.rule.is_outcome,
        "smallest_effect": change.rule.smallest,
        "scenarios": change.scenarios,
        "trials": list(change.trials),
        "worse": change.worse,
        "better": change.better,
        "before": change.before,
        "after": change.after,
        "effect": change.effect,
        "lower": change.lower,
        "upper": change.upper,
        "test": change.test.value,
        "p": change.p,
        "p_corrected": change.corrected,
        "detectable": change.detectable,
        "most_found": change.most_found,
        "more_trials": change.more_trials,
        "below_threshold": change.below_threshold,
        "broke": list(change.regressed),
        "mended": list(change.improved),
        "runs_before": change.runs_before,
        "window": change.window,
        "expected": list(change.expected) if change.expected else None,
    }


def change_from_json(stored: Mapping[str, Any]) -> MeasureChange:
    """Return a change from `change_json`."""
    rule = MeasureRule(
        stored["measure"],
        stored["better_is"],
        Scale(stored["scale"]),
        stored["smallest_effect"],
        stored["is_outcome"],
    )
    return MeasureChange(
        rule,
        ChangeVerdict(stored["verdict"]),
        trials=(stored["trials"][0], stored["trials"][1]),
        test=_OLD_TESTS.get(stored["test"]) or ComparisonTest(stored["test"]),
        corrected=stored["p_corrected"],
        # Older releases didn't store these.
        most_found=stored.get("most_found"),
        regressed=tuple(stored.get("broke", ())),
        improved=tuple(stored.get("mended", ())),
        runs_before=stored.get("runs_before", 1),
        window=stored.get("window", 1),
        expected=_ends(stored.get("expected")),
        **{name: stored[name] for name in _SAME},
    )


_OLD_TESTS = {"sign_flip": ComparisonTest.WITHIN_SCENARIOS, "mcnemar": ComparisonTest.WITHIN_SCENARIOS}
"""Tests of older releases."""


def _ends(stored: list[float] | None) -> tuple[float, float] | None:
    return (stored[0], stored[1]) if stored else None


_SAME = (
    *("scenarios", "worse", "better", "before", "after", "effect", "lower", "upper", "p", "detectable"),
    *("more_trials", "below_threshold"),
)
"""Fields whose JSON is their value."""


def stored_changes(run: int) -> list[MeasureChange]:
    """Return a run's changes against its baseline, headline measures first; none of older releases. One query."""
    rows = Change.objects.filter(run=run, scenario=None).values_list("detail", flat=True)
    changes = [change_from_json(detail) for detail in rows if "measure" in detail]
    order = {name: place for place, name in enumerate(HEADLINE)}
    return sorted(changes, key=lambda each: (order.get(each.rule.name, len(order)), each.rule.name))


def stored_scenario_changes(run: int) -> dict[str, MeasureChange]:
    """Return the stored changes of the pass rate by scenario key; unchanged scenarios are left out. One query."""
    rows = Change.objects.filter(run=run).exclude(scenario=None).values_list("scenario__key", "detail")
    return {key: change_from_json(detail) for key, detail in rows if "measure" in detail}


def pass_changes(runs: Sequence[int]) -> dict[int, MeasureChange]:
    """Return the pass rate's stored change of each run that has one. One query."""
    layer, _, name = PASS.partition("/")
    rows = Change.objects.filter(run__in=runs, scenario=None, measure__layer=layer, measure__name=name)
    stored = rows.values_list("run", "detail")
    return {run: change_from_json(detail) for run, detail in stored if "measure" in detail}
