"""Prepare a comparison's verdict and measures for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluators.statistics import verdict_sentences
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from evaluators.statistics.regression import overall
from runs.compare.measure_changes import HEADLINE, PASS
from runs.results.measures import label_of_key


@dataclass(frozen=True)
class ShownChange:
    """A measure's change as texts."""

    change: MeasureChange
    dollars_a_trial: float | None = None

    @property
    def label(self) -> str:
        return label_of_key(self.change.rule.name)

    @property
    def verdict(self) -> str:
        return self.change.verdict.value

    @property
    def size(self) -> str:
        return verdict_sentences.size(self.change, self.change.effect)

    @property
    def interval(self) -> str:
        return verdict_sentences.interval(self.change)

    @property
    def explanation(self) -> str:
        return verdict_sentences.explanation(self.change, dollars_a_trial=self.dollars_a_trial)

    @property
    def worse(self) -> str:
        return verdict_sentences.scenarios_worse(self.change)

    @property
    def p(self) -> str:
        return verdict_sentences.p_text(self.change.corrected)

    @property
    def p_elsewhere(self) -> str:
        return verdict_sentences.p_text(self.change.p_elsewhere)

    @property
    def p_uncorrected(self) -> str:
        return verdict_sentences.p_text(self.change.p)

    @property
    def detectable(self) -> str:
        return verdict_sentences.size(self.change, self.change.detectable, signed=False)

    @property
    def test(self) -> str:
        return verdict_sentences.TESTS[self.change.test]

    @property
    def direction(self) -> str:
        """Return `better` or `worse` for a verdict, else empty: differences alone have no colour."""
        return {"regressed": "worse", "improved": "better"}.get(self.verdict, "")


@dataclass(frozen=True)
class ShownVerdict:
    """The verdict of a comparison with its measures."""

    verdict: ChangeVerdict
    headline: tuple[ShownChange, ...]
    others: tuple[ShownChange, ...]

    @property
    def label(self) -> str:
        return self.verdict.label

    @property
    def deciding(self) -> ShownChange:
        """Return the measure that the verdict is about: the first with it, else the pass rate."""
        same = [each for each in self.headline if each.change.verdict is self.verdict]
        return (same or list(self.headline))[0]


def shown_verdict(
    changes: Sequence[MeasureChange], *, dollars_a_trial: float | None = None
) -> ShownVerdict | None:
    """Return a comparison for its page; None without a pass rate, which is where nothing was compared."""
    shown = [ShownChange(change, dollars_a_trial) for change in changes]
    headline = tuple(each for each in shown if each.change.rule.name in HEADLINE)
    if not any(each.change.rule.name == PASS for each in headline):
        return None
    others = tuple(each for each in shown if each.change.rule.name not in HEADLINE)
    return ShownVerdict(overall([each.change for each in headline]), headline, others)
