"""Say what an alert is about."""

from __future__ import annotations

from evaluators.name_lists import list_names
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from evaluators.statistics.verdict_sentences import size
from runs.compare.drift import drift_sentence
from runs.compare.intended_changes import worse_after
from runs.compare.measure_changes import PASS
from runs.models import Alert
from runs.models.comparison import OF_AMOUNTS, AlertKind

_WHOLE = {AlertKind.DEARER: "the bill", AlertKind.SLOWER: "all trials"}


def alert_title(alert: Alert) -> str:
    """Return what an alert is called, such as `Regression` or `Worse after guidance 7`. Expects its run's baseline."""
    return worse_after(alert.run) if alert.kind == AlertKind.AFTER_CHANGE else alert.get_kind_display()


def alert_sentence(alert: Alert, change: MeasureChange | None) -> str:
    """Return what got worse, with its full stop; empty where the sizes of the measures say it.

    `change` is the run's change of the pass rate, of an alert of cost or time that of its measure.
    """
    if alert.kind == AlertKind.DRIFT:
        return drift_sentence(alert.drift)
    if change is None:
        return ""
    if alert.kind in OF_AMOUNTS:
        return _of_amount(AlertKind(alert.kind), change)
    if not alert.named:
        return ""
    if change.measure == PASS and change.verdict is ChangeVerdict.REGRESSED:
        return f"The whole suite fell; first {alert.named[0]}."
    noun = "Scenario" if len(alert.named) == 1 else "Scenarios"
    return f"{noun} {list_names(alert.named, 5)} broke."


def _of_amount(kind: AlertKind, change: MeasureChange) -> str:
    """Return a sentence such as `A typical trial +12 %, the bill +45 %.`"""
    typical = f"A typical trial {size(change, change.effect)}"
    if not change.before or change.after is None:
        return f"{typical}."
    return f"{typical}, {_WHOLE[kind]} {size(change, change.after / change.before - 1)}."
