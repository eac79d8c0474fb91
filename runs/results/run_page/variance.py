"""Show where a run's variance comes from, and what to repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.results.measures import label_of_key
from runs.results.variance import MeasureVariance

ADVICE = {
    "judge": "is the judge: judge three times before adding trials.",
    "agent": "is the agent: more trials narrow the result most.",
    "mix": "lies between scenarios: comparisons pair scenarios, so it doesn't blur them; "
    "only more scenarios narrow the mean.",
}
NAMES = {"mix": "Scenario mix", "agent": "Agent", "judge": "Judge"}
NO_REPEATS = "Each scenario has one trial. Run 2 or more to separate the agent from the scenario mix."
ONE_JUDGING = "Each trial was judged once, so the agent's part includes the judge's."
ONE_SCENARIO = "One scenario has no scenario mix."
JUDGE = "judge/judge"


@dataclass(frozen=True)
class VarianceBar:
    """One measure's variance."""

    label: str
    shares: dict[str, float]
    """Shares of the variance by component, 0 to 1; empty if nothing can be separated."""
    advice: str
    notes: tuple[str, ...]
    """What is missing, and which estimates were negative."""

    @property
    def parts(self) -> list[tuple[str, float]]:
        return list(self.shares.items())

    @property
    def text(self) -> str:
        """Return the bar in words."""
        return ", ".join(f"{NAMES[name].lower()} {share:.0%}" for name, share in self.shares.items())


def variance_bars(measured: Sequence[MeasureVariance]) -> list[VarianceBar]:
    """Return a bar for each measure; none if all of them lack repeats for the same reason."""
    return [_bar(each) for each in measured]


def _bar(measured: MeasureVariance) -> VarianceBar:
    split = measured.split
    found = {name: value for name in NAMES if (value := getattr(split, name)) is not None}
    total = sum(found.values())
    label = label_of_key(measured.measure)
    notes = []
    if split.agent is None:
        notes.append(NO_REPEATS)
        found = {}
    else:
        notes += [ONE_SCENARIO] if split.mix is None else []
        notes += [ONE_JUDGING] if split.judge is None and measured.measure == JUDGE else []
    notes += [f"{NAMES[name]}: the estimate was negative and counts as 0." for name in split.clipped if found]
    if found and not total:
        return VarianceBar(label, {}, "Every value is the same.", ())
    shares = {name: value / total for name, value in found.items()}
    top = max(shares, key=lambda name: shares[name], default="")
    advice = f"{shares[top] * 100:.0f} % of the variance {ADVICE[top]}" if top else ""
    return VarianceBar(label, shares, advice, tuple(notes))
