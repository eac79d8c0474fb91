"""Nothing of numpy leaves the statistics: pages encode their numbers as JSON, which refuses numpy's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any

import pytest

from evaluators.statistics import line, looks, power, significance
from evaluators.statistics.looks import Levels
from evaluators.statistics.measure_change import MeasureRule, Sample, Scale
from evaluators.statistics.measure_power import MeasurePower
from evaluators.statistics.power import RateTestLevel
from evaluators.statistics.significance import Arms, Values
from tests.source_imports import imports, module_name, modules, read

FEW = [Arms(3, 4, 1, 4), Arms(2, 4, 2, 4)]
UNEVEN = [Arms(60, 101, 40, 103), Arms(50, 107, 45, 109), Arms(7, 9, 5, 8)]
"""Trial counts that differ so much that permutations are drawn."""
PASS, SCORE = MeasureRule("trial/pass", is_outcome=True), MeasureRule("judge/judge")
LEVEL = RateTestLevel(0.05)
BEFORE = {"a": Sample(5, 1.0), "b": Sample(5, 0.8)}
AFTER = {"a": Sample(5, 0.2), "b": Sample(5, 0.6)}
SCORES = {"a": Sample(5, 0.8, 0.02), "b": Sample(5, 0.7, 0.03)}
RATES = (0.9, 0.7)


def look_state() -> looks.LookState:
    state = looks.state_of(BEFORE, AFTER, 0.05, 10, is_paired=True)
    assert state is not None
    return state


# fmt: off
CALLS: Mapping[Callable[..., Any], Callable[[], Any]] = {
    significance.within_scenario_p: lambda: [significance.within_scenario_p(arms, mid=mid) for arms in (FEW, UNEVEN) for mid in (True, False)],
    significance.within_moments_p: lambda: significance.within_moments_p([Values(5, 0.8, 0.1, 5, 0.5, 0.1)]),
    significance.boschloo_p: lambda: [significance.boschloo_p(arms) for arms in (FEW[0], Arms(0, 5, 5, 5), Arms(150, 211, 120, 223))],
    significance.adjust_holm: lambda: significance.adjust_holm([0.01, 0.04]),
    significance.benjamini_hochberg: lambda: significance.benjamini_hochberg([0.01, 0.04]),
    significance.t_interval: lambda: significance.t_interval([0.1, 0.2, 0.4], 0.95),
    significance.mean_and_error: lambda: significance.mean_and_error([0.1, 0.2, 0.4]),
    significance.student_p: lambda: significance.student_p(-0.1, 0.05, 9),
    significance.t_quantile: lambda: significance.t_quantile(0.95, 7),
    significance.jeffreys_variance: lambda: significance.jeffreys_variance(3, 4),
    line.compare_with_line: lambda: line.compare_with_line([(PASS, line.Line([BEFORE] * 6), AFTER), (SCORE, line.Line([SCORES, BEFORE] * 3), AFTER)]),
    line.detectable_against_line: lambda: line.detectable_against_line(RATES, (5, 5), (0.8, 0.9, 0.8, 0.7, 0.8), 0.05),
    line.compare_amount: lambda: line.compare_amount(MeasureRule("trial/seconds", scale=Scale.RELATIVE), line.Line([SCORES, BEFORE] * 3), AFTER, (line.Line([SCORES, BEFORE] * 3), AFTER)),
    line.is_confirmed_by: lambda: line.is_confirmed_by(line.compare_with_line([(PASS, line.Line([BEFORE, AFTER] * 3), AFTER)]).headline[0]),
    line.find_drift: lambda: line.find_drift([0.9, 0.91] * 10 + [0.7, 0.71] * 10, 0.05),
    line.expected_range: lambda: line.expected_range([(0.9, 10)] * 6, 10),
    power.find_detectable_drop: lambda: power.find_detectable_drop(RATES, (9, 9), (9, 9), LEVEL),
    looks.scale_p: lambda: looks.scale_p(0.01, 0.03),
    looks.share_error: lambda: looks.share_error([0.01, 0.2], looks.ONE_RUN, has_passes=True),
    looks.spent_error: lambda: looks.spent_error(0.5, 0.05),
    looks.plan_levels: lambda: looks.plan_levels((1.0, 2.0, 2.0), (0.01, 0.03, 0.05)),
    looks.planned_levels: lambda: looks.planned_levels([(0.5, 0.5), (1.0, 1.0)]),
    looks.unplanned_levels: lambda: looks.unplanned_levels([(1.0, 1.0), (2.0, 2.0)]),
    looks.decide_look: lambda: looks.decide_look(look_state(), Levels(0.03, 0.02), is_last=False),
    looks.may_change: lambda: looks.may_change(look_state().table),
    looks.is_unlikely: lambda: looks.is_unlikely(0.4, 0.6),
    looks.look_sizes: lambda: looks.look_sizes(3, 10),
    looks.first_size: lambda: looks.first_size(10),
    looks.state_of: look_state,
    looks.compute_information: lambda: looks.compute_information(FEW),
    MeasurePower: lambda: [
        (power.detectable, power.most_found, power.more_trials, power.is_enough(2))
        for power in (
            MeasurePower(PASS, [(BEFORE[key], AFTER[key]) for key in AFTER], 0.05),
            MeasurePower(SCORE, [(SCORES[key], SCORES[key]) for key in SCORES], 0.05),
        )
    ],
}
# fmt: on


def numeric_modules() -> Iterator[str]:
    """Yield the modules of the statistics that import numpy or scipy, also within a function."""
    for path in modules("evaluators/statistics"):
        if any(name.split(".")[0] in ("numpy", "scipy") for _, name in imports(read(path))):
            yield module_name(path)


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values within a result."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    elif hasattr(value, "__dict__") and not isinstance(value, Enum):
        value = list(vars(value).values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    else:
        yield value


@pytest.mark.parametrize("call", CALLS.values(), ids=[each.__name__ for each in CALLS])
def test_a_public_function_returns_plain_numbers(call: Callable[[], Any]) -> None:
    found = {type(each) for each in leaves(call())}
    assert {each for each in found if each.__module__ == "numpy"} == set()


def test_every_public_function_that_may_use_numpy_is_called() -> None:
    public = {
        member
        for name in numeric_modules()
        for member_name, member in vars(import_module(name)).items()
        if getattr(member, "__module__", "") == name and inspect.isfunction(inspect.unwrap(member))
        if not member_name.startswith("_")
    }
    assert {each.__name__ for each in public - set(CALLS)} == set()
