"""Say in words what a comparison of two runs shows."""

from __future__ import annotations

from evaluators.name_lists import list_names
from evaluators.statistics.measure_change import (
    UNDECIDED,
    ChangeVerdict,
    ComparisonTest,
    MeasureChange,
    Scale,
)
from evaluators.statistics.measure_power import MOST_TRIALS
from evaluators.statistics.power import RELIABLE

MINUS = "\u2212"
TESTS = {
    ComparisonTest.NONE: "no test",
    ComparisonTest.WITHIN_SCENARIOS: "permutation of trials within each scenario",
    ComparisonTest.WITHIN_MOMENTS: "permutation of trials within each scenario, by its moments",
    ComparisonTest.BOSCHLOO: "Boschloo's exact test",
    ComparisonTest.LINE: "against the line's runs",
}


def describe_size(change: MeasureChange, effect: float | None, *, signed: bool = True) -> str:
    """Return an effect of the change's measure, such as `−12 points` or `+8 %`; a dash without one."""
    if effect is None:
        return "–"
    points = effect * 100
    amount = f"{abs(points):.0f} {'points' if change.scale is Scale.POINTS else '%'}"
    if not signed:
        return amount
    shown = round(points)
    sign = "±" if shown == 0 else (MINUS if shown < 0 else "+")
    return f"{sign}{amount}"


def describe_interval(change: MeasureChange) -> str:
    """Return the effect's 95 % interval, such as `−30 to +5`; empty without one, or where nothing varied."""
    if change.lower is None or change.upper is None or change.lower == change.upper:
        return ""
    low, high = (_with_sign(each * 100) for each in (change.lower, change.upper))
    return f"{low} to {high}{'' if change.scale is Scale.POINTS else ' %'}"


def _with_sign(value: float) -> str:
    sign = MINUS if round(value) < 0 else "+"
    return f"{sign}{abs(value):.0f}"


def worse_undecided(verdict: ChangeVerdict, pass_rate: MeasureChange) -> str:
    """Return `Worse by 12 points, undecided` where an undecided loss reaches the smallest effect, else nothing."""
    effect = pass_rate.effect
    # Differences of rates are this exact.
    if verdict not in UNDECIDED or effect is None or effect > 1e-9 - pass_rate.smallest_effect:
        return ""
    return f"Worse by {describe_size(pass_rate, effect, signed=False)}, undecided"


def scenarios_worse(change: MeasureChange) -> str:
    """Return how many scenarios changed for the worse, such as `3 of 20 comparable scenarios worse`.

    For an improvement, and where more changed for the better, it is how many did.
    """
    noun = "scenario" if change.scenarios == 1 else "scenarios"
    is_better = change.verdict is ChangeVerdict.IMPROVED
    if change.verdict is not ChangeVerdict.REGRESSED:
        is_better = is_better or change.better > change.worse
    count, word = (change.better, "better") if is_better else (change.worse, "worse")
    return f"{count} of {change.scenarios} comparable {noun} {word}"


def explain_verdict(change: MeasureChange, *, dollars_a_trial: float | None = None) -> str:
    """Return what the verdict rests on, and for an undecided one what it could have shown.

    `dollars_a_trial` is the mean cost of one trial, for the price of more trials.
    """
    if change.verdict is ChangeVerdict.NOT_COMPARABLE:
        return (
            "No scenario of both sides can be compared."
            if change.runs_before > 1
            else "No scenario of both runs can be compared."
        )
    if change.broke or change.mended:
        # Which scenarios broke or improved, and whether the whole suite's pass rate changed, too.
        parts = [
            f"{len(keys)} scenario{'' if len(keys) == 1 else 's'} {word}: {list_names(keys, _MOST_NAMED)}"
            for keys, word in ((change.broke, "broke"), (change.mended, "improved"))
            if keys
        ]
        whole = {
            ChangeVerdict.REGRESSED: "The suite's pass rate fell.",
            ChangeVerdict.IMPROVED: "The suite's pass rate rose.",
        }
        return " ".join(filter(None, (f"{'; '.join(parts)}.", whole.get(change.verdict, ""))))
    if change.verdict in (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED, ChangeVerdict.CHANGED):
        scope = " This is about these scenarios only." if change.is_about_these_scenarios else ""
        return f"p {sign_of_p(change.p_corrected)} after correction, {TESTS[change.test]}.{scope}"
    if change.verdict is ChangeVerdict.EQUIVALENT:
        return f"The change is smaller than {_smallest(change)} either way."
    if change.below_threshold:
        limits = f" (95 % interval {describe_interval(change)})" if describe_interval(change) else ""
        return f"The change is real{limits}, and smaller than your threshold of {_smallest(change)}."
    if change.expected is not None:
        # Where the line expects the run, such as `90 %, expected 84 to 95 %.`.
        low, high = change.expected or (0.0, 1.0)
        after = change.after or 0.0
        return f"{after * 100:.0f} %, expected {low * 100:.0f} to {high * 100:.0f} %."
    return " ".join(filter(None, (could_show(change), _more(change, dollars_a_trial))))


_MOST_NAMED = 5


def could_show(change: MeasureChange) -> str:
    """Return the smallest change that this comparison could have shown."""
    if change.detectable is None:
        if change.test is ComparisonTest.NONE:
            return "A verdict needs at least three trials."
        if change.most_found:
            missed = f"{1 - change.most_found:.0%}".replace("%", " %")
            return f"Of comparisons this small, {missed} miss even the loss of every pass."
        return "So few trials can't reach a verdict, whatever they show."
    shown = describe_size(change, change.detectable, signed=False)
    if change.verdict is ChangeVerdict.NO_EVIDENCE:
        return f"A change of {shown} or more would have been found four times out of five."
    if change.effect is not None and abs(change.effect) >= change.detectable:
        return "The scenarios changed too differently for so few trials to tell."
    return f"This comparison could only have shown a change of {shown}."


LEAST_P = 0.0001
"""Smaller ones are shown as below it."""


def p_text(p: float | None) -> str:
    """Return a p with as many digits as it needs."""
    if p is None:
        return "–"
    if p < LEAST_P:
        return f"< {LEAST_P:.4f}"
    return f"{p:.4f}" if p < 0.001 else f"{p:.3f}"


def sign_of_p(p: float | None) -> str:
    """Return a p with its sign, such as `= 0.005` or `< 0.0001`."""
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"


def _smallest(change: MeasureChange) -> str:
    return describe_size(change, change.smallest_effect, signed=False)


def _more(change: MeasureChange, dollars: float | None) -> str:
    """Return how many more trials would show a little more than the smallest effect of interest, with their price."""
    if change.test is ComparisonTest.NONE or change.more_trials == 0:
        return ""
    wanted = describe_size(change, RELIABLE * change.smallest_effect, signed=False)
    if change.more_trials is None:
        return f"To show {wanted} takes over {MOST_TRIALS:,} trials of each scenario. Add scenarios."
    noun = "trial" if change.more_trials == 1 else "trials"
    price = f", about ${2 * change.more_trials * change.scenarios * dollars:.2f}" if dollars else ""
    return f"{change.more_trials} more {noun} of each scenario in both runs would show {wanted}{price}."
