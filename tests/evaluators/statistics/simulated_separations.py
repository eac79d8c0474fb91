"""Simulates regressions with two possible causes, and counts which one the fresh runs point at.

Guidance can be set back, the tool can't. `python -m tests.evaluators.statistics.simulated_separations` prints the table of
docs/statistics.md.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from evaluators.statistics.measure_change import ChangeVerdict, Sample
from evaluators.statistics.regression import compare_headline, decide_overall
from tests.evaluators.statistics.simulated_runs import HEADLINE, simulated_run

Measured = tuple[dict[str, Sample], ...]
SEPARATIONS = 600
DESIGNS = ((5, 5), (10, 3), (10, 5), (20, 3), (20, 10))
"""Scenarios and trials of each."""
CASES = (("tool", -0.3), ("guidance", -0.3), ("guidance", -0.2))
"""The true cause, and its change."""
_MOST_TRIES = 60
"""Runs in search of one that regressed."""
_UNCHANGED = (ChangeVerdict.EQUIVALENT, ChangeVerdict.NO_EVIDENCE, ChangeVerdict.SMALL)


def _verdict(before: Measured, after: Measured) -> ChangeVerdict:
    return decide_overall(compare_headline(list(zip(HEADLINE, before, after, strict=True)), with_power=False))


def named(
    rng: np.random.Generator, scenarios: int, trials: int, cause: str, change: float
) -> tuple[str, str]:
    """Return what the fresh runs point at, and what they pointed at by the earlier rule; empty for neither."""
    rates = rng.beta(8, 1.2, scenarios)
    changed = np.clip(rates + change, 0, 1)

    def run(old_guidance: bool) -> Measured:
        is_good = cause == "guidance" and old_guidance
        return simulated_run(rng, rates if is_good else changed, trials)

    for _ in range(_MOST_TRIES):
        baseline = simulated_run(rng, rates, trials)
        if _verdict(baseline, run(False)) is ChangeVerdict.REGRESSED:
            break
    control, arm = run(False), run(True)
    beside, still = _verdict(control, arm), _verdict(baseline, arm) is ChangeVerdict.REGRESSED
    if beside is ChangeVerdict.IMPROVED:
        return "" if still else "guidance", "guidance"
    if _verdict(baseline, control) is not ChangeVerdict.REGRESSED:
        return "", ""
    return "tool" if still else "", "tool" if beside in _UNCHANGED else ""


def shares(
    scenarios: int, trials: int, cause: str, change: float, separations: int = SEPARATIONS
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the shares of separations that point at each cause, and those by the earlier rule."""
    rng = np.random.default_rng(scenarios * trials)
    found = [named(rng, scenarios, trials, cause, change) for _ in range(separations)]
    now, earlier = (Counter(each[n] for each in found) for n in (0, 1))
    return (
        {name: now[name] / separations for name in ("tool", "guidance")},
        {name: earlier[name] / separations for name in ("tool", "guidance")},
    )


def main() -> None:
    print("| scenarios × trials | true cause | tool named | guidance named | tool, guidance before |")
    print("| --- | --- | --- | --- | --- |")
    for cause, change in CASES:
        for design in DESIGNS:
            now, earlier = shares(*design, cause, change)
            cells = f"{now['tool']:.1%} | {now['guidance']:.1%} | {earlier['tool']:.1%}, {earlier['guidance']:.1%}"
            print(
                f"| {design[0]} × {design[1]} | {cause}, −{abs(change) * 100:.0f} points | {cells} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
