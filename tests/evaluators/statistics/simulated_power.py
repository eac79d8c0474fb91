"""Simulates pairs of runs with exactly the change that a text about power names, and counts how often it is found.

`python -m tests.evaluators.statistics.simulated_power` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from statistics import fmean, median

import numpy as np

from evaluators.statistics.looks import PASS_RATE_SHARE
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange, MeasureRule, Sample
from evaluators.statistics.power import RELIABLE, RateTestLevel, expected_rates, find_detectable_drop
from evaluators.statistics.regression import compare_headline, compare_measures, decide_overall
from tests.evaluators.statistics.simulated_runs import HEADLINE, samples_of

PASS = HEADLINE[0]
JUDGE = HEADLINE[1]
RATES = {"0.85 to 1": (0.85, 1.0), "0.4 to 0.8": (0.4, 0.8)}
DESIGNS = (
    *(
        (1, 10, 10),
        (1, 20, 20),
        (3, 3, 3),
        (3, 10, 10),
        (5, 3, 3),
        (5, 5, 5),
        (10, 3, 3),
        (10, 5, 5),
        (20, 3, 3),
    ),
    *((20, 5, 5), (20, 10, 10), (50, 1, 1), (50, 3, 3), (100, 1, 1), (10, 30, 3), (20, 10, 1)),
)
"""Scenarios, and trials of each before and after."""
ADVISED = ((5, 5, 0.05), (5, 3, 0.2), (10, 3, 0.05), (10, 3, 0.1), (20, 3, 0.1), (3, 3, 0.3))
"""Scenarios, trials of each in both runs, and the smallest effect."""
SCORES = ((10, 3, 0.03), (10, 3, 0.1), (20, 5, 0.2), (5, 5, 0.05))
"""Scenarios, trials of each in both runs, and the standard deviation of a trial."""
COVERED = (
    (1, 10, 10),
    (3, 3, 3),
    (7, 2, 2),
    (5, 5, 5),
    (10, 1, 1),
    (10, 3, 3),
    (20, 20, 1),
    (50, 1, 1),
    (5, 20, 3),
)
"""Scenarios, and trials of each before and after, of printed intervals."""
COMPARISONS = 1_000
_TEXTS = 40
"""Unchanged comparisons; a text's number is their median."""


def passes_of(rng: np.random.Generator, rates: np.ndarray, trials: int) -> dict[str, Sample]:
    """Return the samples of a run's passes by scenario."""
    counts = rng.binomial(trials, rates)
    return {str(key): Sample(trials, count / trials) for key, count in enumerate(counts.tolist())}


def _lowered(rates: np.ndarray, drop: float) -> np.ndarray:
    """Return rates whose mean is lower by exactly this, each by as much as it can be."""
    left = rates.copy()
    while (missing := rates.mean() - left.mean() - drop) < -1e-9:
        left = np.where(left > 0, np.maximum(0, left + missing * rates.size / (left > 0).sum()), left)
    return left


def _that_can_lose(
    rng: np.random.Generator, scenarios: int, span: tuple[float, float], drop: float
) -> np.ndarray:
    """Return drawn rates whose mean is at least the drop: a small suite may have less."""
    while True:
        rates = rng.uniform(*span, scenarios)
        if rates.mean() >= drop:
            return rates


def promised_and_found(
    scenarios: int, before: int, after: int, span: tuple[float, float], comparisons: int = COMPARISONS
) -> tuple[float | None, float, float]:
    """Return what unchanged comparisons could only have shown, and how often that is found, 0 to 1.

    By the pass rate's own verdict, and by that of the run, which names broken scenarios, too.
    """
    rng = np.random.default_rng(scenarios * 100 + before)
    shown = [
        compare_headline([(PASS, *(passes_of(rng, rates, trials) for trials in (before, after)))])[
            0
        ].detectable
        for rates in (rng.uniform(*span, scenarios) for _ in range(_TEXTS))
    ]
    known = [each for each in shown if each is not None]
    if len(known) < _TEXTS / 2:
        return None, 0.0, 0.0
    drop, own, whole = median(known), 0, 0
    for _ in range(comparisons):
        rates = _that_can_lose(rng, scenarios, span, drop)
        lost = _lowered(rates, drop)
        sides = passes_of(rng, rates, before), passes_of(rng, lost, after)
        (change,) = compare_headline([(PASS, *sides)], with_power=False)
        own += change.verdict is ChangeVerdict.REGRESSED
        whole += decide_overall([change]) is ChangeVerdict.REGRESSED
    return drop, own / comparisons, whole / comparisons


def planned_and_found(
    scenarios: int, trials: int, span: tuple[float, float], comparisons: int = 400
) -> float:
    """Return how often the change is found that a plan of a run names, after five runs of the suite.

    Each plan's own change happens to its own scenarios.
    """
    rng, found, plans = np.random.default_rng(scenarios + trials), 0, 0
    while plans < comparisons:
        rates = rng.uniform(*span, scenarios)
        known = expected_rates(rng.binomial(5 * trials, rates).tolist(), [5 * trials] * scenarios)
        arms = [trials] * scenarios
        change = find_detectable_drop(known, arms, arms, RateTestLevel(PASS_RATE_SHARE, PASS.smallest_effect))
        if change is None or change > rates.mean():
            continue
        plans += 1
        lost = _lowered(rates, change)
        sides = passes_of(rng, rates, trials), passes_of(rng, lost, trials)
        found += compare_headline([(PASS, *sides)], with_power=False)[0].verdict is ChangeVerdict.REGRESSED
    return found / comparisons


def advised_and_found(
    scenarios: int, trials: int, smallest: float, comparisons: int = 300
) -> tuple[int, float]:
    """Return how many more trials are advised, and how often they then find the change that the advice names."""
    rule = MeasureRule(PASS.measure, smallest_effect=smallest, is_outcome=True)
    rng = np.random.default_rng(scenarios * trials)
    advice = []
    for _ in range(_TEXTS):
        rates = rng.uniform(0.7, 1, scenarios)
        advice.append(
            compare_headline([(rule, passes_of(rng, rates, trials), passes_of(rng, rates, trials))])[
                0
            ].more_trials
        )
    more = round(median(each for each in advice if each is not None))
    found = 0
    for _ in range(comparisons):
        rates = rng.uniform(0.7, 1, scenarios)
        sides = (
            passes_of(rng, rates, trials + more),
            passes_of(rng, rates - RELIABLE * smallest, trials + more),
        )
        found += compare_headline([(rule, *sides)], with_power=False)[0].verdict is ChangeVerdict.REGRESSED
    return more, found / comparisons


def scores_of(rng: np.random.Generator, means: np.ndarray, sd: float, trials: int) -> dict[str, Sample]:
    """Return the samples of judge scores with this standard deviation of a trial."""
    return samples_of(np.clip(means[:, None] + sd * rng.normal(size=(means.size, trials)), 0, 1))


def score_found(scenarios: int, trials: int, sd: float, comparisons: int = 400) -> tuple[float, float, float]:
    """Return what comparisons of scores could only have shown, how often it is found, and how often none is Equivalent."""
    rng = np.random.default_rng(scenarios * trials)
    changes: list[MeasureChange] = []
    for _ in range(comparisons):
        means = rng.uniform(0.5, 0.8, scenarios)
        sides = (scores_of(rng, means, sd, trials) for _ in range(2))
        changes += compare_measures([(JUDGE, *sides)])
    drop = median(each.detectable for each in changes if each.detectable is not None)
    equivalent = fmean(each.verdict is ChangeVerdict.EQUIVALENT for each in changes)
    found = 0
    for _ in range(comparisons):
        means = rng.uniform(0.5, 0.8, scenarios)
        sides = scores_of(rng, means, sd, trials), scores_of(rng, means - drop, sd, trials)
        found += compare_measures([(JUDGE, *sides)])[0].verdict is ChangeVerdict.REGRESSED
    return drop, found / comparisons, equivalent


def covered(
    scenarios: int,
    before: int,
    after: int,
    span: tuple[float, float],
    drop: float,
    comparisons: int = COMPARISONS,
) -> float:
    """Return how often the pass rate's printed 95 % interval contains the true change, 0 to 1."""
    rng, found = np.random.default_rng(scenarios), 0
    for _ in range(comparisons):
        rates = rng.uniform(*span, scenarios)
        sides = passes_of(rng, rates, before), passes_of(rng, rates - drop, after)
        (change,) = compare_headline([(PASS, *sides)], with_power=False)
        found += (
            change.lower is not None and change.upper is not None and change.lower <= -drop <= change.upper
        )
    return found / comparisons


def main() -> None:
    print(
        "| scenarios × trials | pass rates | could only have shown | found | by the run's verdict | plan's found |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for scenarios, before, after in DESIGNS:
        for name, span in RATES.items():
            drop, own, whole = promised_and_found(scenarios, before, after, span)
            design = f"{scenarios} × {before}" + ("" if before == after else f", then {after}")
            if drop is None:
                print(f"| {design} | {name} | nothing | – | – | – |", flush=True)
                continue
            plan = f"{planned_and_found(scenarios, before, span):.0%}" if before == after else "–"
            print(
                f"| {design} | {name} | {drop * 100:.0f} points | {own:.0%} | {whole:.0%} | {plan} |",
                flush=True,
            )
    print(
        "\n| scenarios × trials | smallest effect | more trials | would show | found |\n" + "| --- " * 5 + "|"
    )
    for scenarios, trials, smallest in ADVISED:
        more, share = advised_and_found(scenarios, trials, smallest)
        wanted = RELIABLE * smallest * 100
        print(
            f"| {scenarios} × {trials} | {smallest * 100:.0f} points | {more} | {wanted:.1f} points | {share:.0%} |",
            flush=True,
        )
    print(
        "\n| scenarios × trials | a trial's standard deviation | could only have shown | found | Equivalent |"
    )
    print("| --- " * 5 + "|")
    for scenarios, trials, sd in SCORES:
        drop, found, equivalent = score_found(scenarios, trials, sd)
        print(
            f"| {scenarios} × {trials} | {sd * 100:.0f} points | {drop * 100:.1f} points | {found:.0%}"
            f" | {equivalent:.0%} |",
            flush=True,
        )
    print(
        "\n| scenarios × trials | 0.85 to 1 | 20 points less | 0.4 to 0.8 | 20 points less |\n"
        + "| --- " * 5
        + "|"
    )
    for scenarios, before, after in COVERED:
        shares = [
            covered(scenarios, before, after, span, drop) for span in RATES.values() for drop in (0.0, 0.2)
        ]
        design = f"{scenarios} × {before}" + ("" if before == after else f", then {after}")
        print(f"| {design} | {' | '.join(f'{share:.0%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
