"""Total the tool's subcommands over a run's trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter

from msgspec import structs

from evaluators.tool_use.attempts import Attempts
from evaluators.tool_use.interaction import Interaction, Subcommand


class SubcommandTotal(Subcommand, gc=False):
    """One subcommand over a run's trials without errors."""

    tries: float | None = None
    """Median tries until success; None if it never succeeded or is unknown."""
    message: str = ""
    """Its most frequent error message."""
    messages: int = 0
    """How often that message occurred."""


def totals_by_subcommand(
    trials: Iterable[tuple[Interaction | None, Mapping[str, Attempts]]],
) -> list[SubcommandTotal]:
    """Return totals by subcommand, from layer 1 and each trial's attempts."""
    counts: dict[str, Subcommand] = {}
    tries: defaultdict[str, dict[str, int]] = defaultdict(dict)
    messages: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for interaction, attempts in trials:
        for subcommand in interaction.subcommands if interaction else ():
            _add(
                counts.get(subcommand.name)
                or counts.setdefault(subcommand.name, Subcommand(subcommand.name)),
                subcommand,
            )
        for name, tried in attempts.items():
            _count(tries[name], tried.tries)
            _count(messages[name], tried.errors)
    return [_total(subcommand, tries[name], messages[name]) for name, subcommand in sorted(counts.items())]


def _count(total: dict[str, int], counts: Mapping[str, int]) -> None:
    # Five times as fast as Counter.update for one or two names.
    for name, often in counts.items():
        total[name] = total.get(name, 0) + often


def _add(total: Subcommand, part: Subcommand) -> None:
    total.calls += part.calls
    total.errors += part.errors
    total.first_tries += part.first_tries
    total.helps += part.helps
    total.retries_after_failure += part.retries_after_failure
    total.unknown += part.unknown


def _total(counts: Subcommand, tries: Mapping[str, int], messages: Mapping[str, int]) -> SubcommandTotal:
    message, often = max(messages.items(), key=itemgetter(1), default=("", 0))
    middle = median_of({int(number): often for number, often in tries.items()})
    return SubcommandTotal(**structs.asdict(counts), tries=middle, message=message, messages=often)


def median_of(counted: Mapping[int, int]) -> float | None:
    """Return the median of counted numbers; None for no numbers."""
    whole = sum(counted.values())
    if not whole:
        return None
    middle = ((whole - 1) // 2, whole // 2)
    return sum(_at(counted, place) for place in middle) / 2


def _at(counted: Mapping[int, int], place: int) -> int:
    for number in sorted(counted):
        place -= counted[number]
        if place < 0:
            return number
    raise IndexError("There are fewer numbers.")
