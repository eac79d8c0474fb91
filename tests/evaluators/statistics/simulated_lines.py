"""Simulates lines of runs, and counts what a comparison with the line calls a change.

`python -m tests.evaluators.statistics.simulated_lines` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from evaluators.statistics.line import FEWEST_RUNS, Runs, compare_with_line
from evaluators.statistics.line_members import AlertDecision, LineRun, members_after
from evaluators.statistics.measure_change import ChangeVerdict, MeasureRule, Sample
from evaluators.statistics.regression import compare_headline, overall
from tests.evaluators.statistics.simulated_runs import HEADLINE, simulated_run

ALARMS = (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED)
COMPARISONS = 1_000


class Design(NamedTuple):
    """A line and a new run."""

    scenarios: int
    line: tuple[int, ...]
    """Trials of each scenario in the runs of the line, in turn."""
    new: int
    """Trials of each scenario in the new run."""
    runs: int = 10
    missing: float = 0.0
    """Share of the line's scenarios that a run lacks."""

    @property
    def label(self) -> str:
        """The design as the tables name it."""
        counts = " and ".join(map(str, self.line))
        parts = [f"{self.scenarios} × {counts}, then {self.new}"]
        parts += [f"{self.runs} runs"] if self.runs != 10 else []
        parts += [f"{self.missing:.0%} missing"] if self.missing else []
        return "; ".join(parts)


class Drift(NamedTuple):
    """How true rates vary from run to run without any change."""

    run: float = 0.0
    """Standard deviation of all scenarios together, in points as a share."""
    scenario: float = 0.0
    """Standard deviation of each scenario by itself."""


DRIFTS = {
    "steady": Drift(),
    "3 points": Drift(0.03),
    "5 points": Drift(0.05),
    "5 points, 5 of each scenario": Drift(0.05, 0.05),
}
DESIGNS = (
    Design(20, (10,), 10),
    Design(20, (10,), 10, runs=5),
    Design(20, (10,), 1),
    Design(20, (10,), 2),
    Design(20, (2,), 20),
    Design(10, (5,), 5),
    Design(10, (5,), 5, runs=5),
    Design(10, (2, 10), 5),
    Design(10, (5,), 5, missing=0.3),
    Design(5, (3,), 3),
    Design(5, (3,), 3, runs=5),
    Design(50, (3,), 3),
    Design(50, (5,), 5),
)
Rates = Callable[[np.random.Generator, int], np.ndarray]
RATES: dict[str, Rates] = {
    "usual": lambda rng, n: rng.beta(8, 1.2, n),
    "mixed": lambda rng, n: rng.beta(2.4, 0.6, n),
    "99 %": lambda rng, n: np.full(n, 0.99),
    "100 %": lambda rng, n: np.full(n, 1.0),
}
"""True pass rates of scenarios: with a mean of 0.87, of 0.8, and at the ceiling."""

Measures = tuple[dict[str, Sample], ...]


def drifted(rng: np.random.Generator, rates: np.ndarray, drift: Drift) -> np.ndarray:
    """Return a run's true rates."""
    shift = rng.normal(0, drift.run) + rng.normal(0, drift.scenario, len(rates))
    return np.where(rates < 1.0, np.clip(rates + shift, 0.0, 1.0), rates)


def line_and_run(
    rng: np.random.Generator,
    rates: np.ndarray,
    design: Design,
    drift: Drift,
    change: Callable[[np.ndarray], np.ndarray] = lambda rates: rates,
) -> tuple[list[Measures], Measures]:
    """Return a line's runs and a new one whose true rates changed."""
    line = []
    for place in range(design.runs):
        run = simulated_run(rng, drifted(rng, rates, drift), design.line[place % len(design.line)])
        kept = {str(key) for key in range(design.scenarios) if rng.random() >= design.missing}
        line.append(tuple({key: own for key, own in each.items() if key in kept} for each in run))
    new = np.clip(change(drifted(rng, rates, drift)), 0, 1)
    return line, simulated_run(rng, new, design.new)


def compared(line: Sequence[Measures], new: Measures) -> ChangeVerdict:
    """Return the verdict of a run against a line."""
    columns: list[Runs] = [[run[place] for run in line] for place in range(len(HEADLINE))]
    return overall(compare_with_line(list(zip(HEADLINE, columns, new, strict=True))).headline)


def false_alarms(
    design: Design, drift: Drift, rates: Rates = RATES["usual"], comparisons: int = COMPARISONS
) -> float:
    """Return the share of unchanged runs that are called regressed or improved."""
    rng, alarms = np.random.default_rng(design.scenarios * design.new), 0
    for _ in range(comparisons):
        alarms += compared(*line_and_run(rng, rates(rng, design.scenarios), design, drift)) in ALARMS
    return alarms / comparisons


def worse_by(points: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return what lowers every rate."""
    return lambda rates: rates - points / 100


def broken(count: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what lets so many scenarios fall to 2 %."""
    return lambda rates: np.concatenate([np.full(count, 0.02), rates[count:]])


CHANGES = {
    "all −15 points": worse_by(15),
    "all −30 points": worse_by(30),
    "one breaks": broken(1),
    "two break": broken(2),
}


def share_found(
    design: Design,
    drift: Drift,
    change: Callable[[np.ndarray], np.ndarray],
    rates: Rates = RATES["usual"],
    comparisons: int = COMPARISONS,
) -> float:
    """Return the share of changed runs that are called regressed."""
    rng, found = np.random.default_rng(design.scenarios * design.new + 1), 0
    for _ in range(comparisons):
        line, new = line_and_run(rng, rates(rng, design.scenarios), design, drift, change)
        found += compared(line, new) is ChangeVerdict.REGRESSED
    return found / comparisons


FOUND = (
    Design(10, (5,), 5),
    Design(10, (6,), 6),
    Design(10, (7,), 7),
    Design(10, (5,), 5, runs=5),
    Design(10, (10,), 3),
    Design(20, (3,), 3),
    Design(20, (5,), 5),
    Design(50, (5,), 5),
)


class Membership(NamedTuple):
    """Histories in which every run is compared with its line, and nobody decides on a regression."""

    false: float
    """The share of runs of stable histories that read regressed."""
    red: float
    """The share of drops found in their first run whose line is still frozen eight runs later."""


HISTORIES: dict[str, tuple[int, int, float, float]] = {
    "10 × 6, steady, −15 points": (10, 6, 0.0, 0.15),
    "10 × 5, 3 points of drift, −25 points": (10, 5, 0.03, 0.25),
    "20 × 10, 5 points of drift, −25 points": (20, 10, 0.05, 0.25),
}
"""Scenarios, trials, drift, and the drop after `BEFORE_DROP` runs."""
BEFORE_DROP, AFTER_DROP, STABLE = 12, 8, 30


def history_of(
    rng: np.random.Generator, shifts: Sequence[float], scenarios: int, trials: int, drift: float
) -> list[LineRun]:
    """Return a history's runs with their verdicts, each compared with the line that those before it leave.

    Takes each run's change of all true pass rates. A run has a commit of its own, so none is pooled.
    """
    rates = rng.beta(2.4, 0.6, scenarios)
    samples: list[dict[str, Sample]] = []
    past: list[LineRun] = []
    for key, shift in enumerate(shifts):
        passes = rng.binomial(trials, np.clip(rates + rng.normal(0, drift) + shift, 0.0, 1.0))
        new = {f"s{place}": Sample(trials, each / trials) for place, each in enumerate(passes.tolist())}
        line = members_after(past).newest
        verdict = _against(HEADLINE[0], [samples[each] for each in line], new)
        samples.append(new)
        decision = AlertDecision.OPEN if verdict == "regressed" else None
        past.append(LineRun(key, verdict, decision, float(key)))
    return past


def _against(rule: MeasureRule, line: Runs, new: dict[str, Sample]) -> str:
    if not line:
        return ""
    if len(line) < FEWEST_RUNS:
        return overall(compare_headline([(rule, line[0], new)])).value
    return overall(compare_with_line([(rule, line, new)]).headline).value


def membership(scenarios: int, trials: int, drift: float, drop: float, histories: int = 200) -> Membership:
    """Return how often stable histories read regressed, and whether true drops stay red."""
    rng, false, found, red = np.random.default_rng(scenarios * trials), 0, 0, 0
    for _ in range(histories):
        stable = history_of(rng, [0.0] * STABLE, scenarios, trials, drift)
        false += sum(each.verdict == "regressed" for each in stable[FEWEST_RUNS:])
        shifts = [0.0] * BEFORE_DROP + [-drop] * (AFTER_DROP + 1)
        fallen = history_of(rng, shifts, scenarios, trials, drift)
        if fallen[BEFORE_DROP].verdict == "regressed":
            found += 1
            red += members_after(fallen).since is not None
    return Membership(false / histories / (STABLE - FEWEST_RUNS), red / max(1, found))


def _row(label: str, shares: Sequence[float], digits: int) -> str:
    return f"| {label} | {' | '.join(f'{share:.{digits}%}' for share in shares)} |"


def _head(first: str, labels: Sequence[str]) -> str:
    return f"\n| {first} | {' | '.join(labels)} |\n| {'--- | ' * (len(labels) + 1)}"


def main() -> None:
    print(_head("false alarms: scenarios × trials", list(DRIFTS)))
    for design in DESIGNS:
        print(_row(design.label, [false_alarms(design, each) for each in DRIFTS.values()], 1), flush=True)
    print(_head("false alarms: true rates", ["5 × 3, then 3", "10 × 5, then 5", "20 × 10, then 2"]))
    ceilings = (Design(5, (3,), 3), Design(10, (5,), 5), Design(20, (10,), 2))
    for name, rates in RATES.items():
        print(_row(name, [false_alarms(each, Drift(), rates) for each in ceilings], 1), flush=True)
    for name in ("steady", "5 points"):
        print(_head(f"found, {name}: scenarios × trials", list(CHANGES)))
        for design in FOUND:
            shares = [share_found(design, DRIFTS[name], each, comparisons=400) for each in CHANGES.values()]
            print(_row(design.label, shares, 0), flush=True)
    print(_head("undecided regressions", ["false alarms a run", "frozen eight runs after a drop"]))
    for label, history in HISTORIES.items():
        print(_row(label, membership(*history), 1), flush=True)


if __name__ == "__main__":
    main()
