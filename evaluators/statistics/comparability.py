"""Which results of two runs can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Reasons = tuple[str, ...]
"""Which of a scenario's parts changed, such as task and gates; nothing where results can be compared."""


class Standard(NamedTuple):
    """What a scenario asks and how it judges, as hashes; empty where it has no such part."""

    task: str
    gates: str
    judge: str = ""
    rubric: str = ""
    pattern: str = ""
    """What finds the tool's commands."""
    judge_model: str = ""
    """The target that judged, with its definition; `none` where the run left judges out, empty if unknown."""
    prices: str = ""
    """Where costs come from."""
    threshold: str = ""
    """The aggregate score that a trial needed, where the two runs requested different ones."""
    time_limit: str = ""
    """Seconds that an agent had, where the scenario leaves them to runs and the two requested different ones."""
    rules: str = ""
    """The version of the rules by which commands are counted, where the two runs' differ."""
    ends: str = ""
    """The source of the commands' ends, where the two runs' differ: recorded, reported or estimated."""
    gate_counting: str = ""
    """Both, where they differ and a gate reads the commands."""
    composite_counting: str = ""
    """Both, where they differ and the composite reads the commands."""


_TASK = frozenset(("task", "time_limit"))
_SCORING = _TASK | {"gates", "judge", "rubric", "judge_model"}
DECIDING = _SCORING | {"threshold", "gate_counting"}
"""The parts that decide whether a trial passes."""
_BY_LAYER = {
    "interaction": _TASK | {"pattern", "rules", "ends"},
    "gates": _TASK | {"gates"},
    "assertions": _TASK | {"gates"},
    "judge": _TASK | {"rubric", "judge", "judge_model"},
    "evaluators": _SCORING,
}
_OF_TRIALS = {
    "pass": DECIDING,
    "false_done": _TASK | {"gates", "gate_counting"},
    "composite": _SCORING | {"gate_counting", "composite_counting"},
    "cost_usd": _TASK | {"prices"},
}


READS_COMMANDS = "no_transcript_errors"
"""The type of the gate that reads the commands and their ends."""
_NAMES = {
    "rules": "counting rules",
    "ends": "source of exit codes",
    "gate_counting": "counting of commands for a gate",
    "composite_counting": "counting of commands for the composite",
}
"""Parts whose name in a sentence is not their own."""


def parts_of(layer: str, name: str) -> frozenset[str]:
    """Return the parts of a scenario that a measure depends on; unknown measures depend on all that decide."""
    if layer == "trial":
        return _OF_TRIALS.get(name, _TASK)
    if (layer, name) == ("interaction", "completed"):
        return _TASK
    if layer == "gates" and name.startswith(READS_COMMANDS):
        return _BY_LAYER[layer] | {"gate_counting"}
    return _BY_LAYER.get(layer, DECIDING)


def find_changed_parts(before: Standard, after: Standard) -> Reasons:
    """Return the parts of a scenario that changed; results that depend on none of them can be compared."""
    pairs = zip(Standard._fields, before, after, strict=True)
    return tuple(part for part, old, new in pairs if old != new)


def outcome_parts(before: Standard, after: Standard) -> Reasons:
    """Return the parts that changed of those that decide outcomes; nothing where outcomes can be compared."""
    return tuple(part for part in find_changed_parts(before, after) if part in DECIDING)


def outcome_reasons(reasons: Mapping[str, Reasons]) -> dict[str, Reasons]:
    """Return the scenarios whose outcomes cannot be compared, with the changed parts that decide them."""
    deciding = {key: tuple(part for part in found if part in DECIDING) for key, found in reasons.items()}
    return {key: found for key, found in deciding.items() if found}


def not_comparable(before: Mapping[str, Standard], after: Mapping[str, Standard]) -> dict[str, Reasons]:
    """Return the changed parts of each scenario that both have, by key; nothing for those that did not change."""
    reasons = {key: find_changed_parts(before[key], after[key]) for key in after if key in before}
    return {key: found for key, found in reasons.items() if found}


def name_incomparable(reasons: Mapping[str, Reasons]) -> str:
    """Return the scenarios that cannot be compared with what changed, such as `…: create (gates)`; empty without any."""
    scenarios = ", ".join(f"{key} ({_words(parts)})" for key, parts in reasons.items())
    return f"{_count(len(reasons))}, changed: {scenarios}" if scenarios else ""


def describe_incomparable(reasons: Sequence[Reasons]) -> str:
    """Return how many scenarios cannot be compared and why, such as `3 scenarios not comparable: gates changed`."""
    if not reasons:
        return ""
    parts = Standard._fields
    frequent = Counter(reasons).most_common()
    # The most frequent first, then in the order of the parts, whatever the order of the scenarios.
    frequent.sort(key=lambda each: (-each[1], [parts.index(part) for part in each[0]]))
    counts = [(f"{_words(each)} changed", n) for each, n in frequent]
    why = ", ".join(f"{words} ({n})" if len(counts) > 1 else words for words, n in counts)
    return f"{_count(len(reasons))}: {why}"


def _words(reasons: Reasons) -> str:
    return " and ".join(_NAMES.get(part, part) for part in reasons).replace("_", " ")


def _count(n: int) -> str:
    return f"{n} scenario{'s' * (n != 1)} not comparable"
