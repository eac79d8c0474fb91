"""How a run's commands are counted: the version of the rules, and the source of the commands' codes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from evalhub.lib.numbers import format_count
from evaluators.statistics.comparability import READS_COMMANDS, Standard
from evaluators.tool_use.interaction import describe_unknown
from runs.results.layer_totals import ExitCodeTotals
from scenarios.models import Scenario, SuiteEntry


def describe_unknown_exits(codes: ExitCodeTotals) -> str:
    """Return how many exit codes are unknown, and how many of these commands printed an error; empty if all are known."""
    return describe_unknown(codes.commands, codes.commands - codes.known, codes.printed_errors)


def describe_exit_codes(codes: ExitCodeTotals) -> list[str]:
    """Return notes on these exit codes, besides the number of unknown ones; none if every call counts."""
    texts = list[str]()
    if codes.estimated:
        texts.append(f"{codes.estimated:,} estimated from text")
    if codes.not_run:
        texts.append(f"{codes.not_run:,} not run")
    if codes.unread:
        texts.append(f"{format_count(codes.unread, 'shell line')} not read in time")
    if codes.others:
        texts.append(f"n/a in {format_count(codes.others, 'trial')} from another source")
    texts += [f"and {format_count(n, 'call')} by {program}" for program, n in codes.indirect_by.items()]
    return texts


RECORDED, REPORTED, ESTIMATED = "recorded", "reported", "estimated"
NOT_RECORDED = "The tool was not recorded: "
"""How a trial's note begins that gives the reason why its tool was not recorded."""
NOT_COMPARED = "Tool use isn't compared: counting rules or source of exit codes changed."
FEWEST_KNOWN = 3
"""Fewer known exit codes give no rate on pages."""
_BY_SOURCE = {"recorded": RECORDED, "transcript": ESTIMATED}
_BEST_FIRST = (RECORDED, REPORTED, ESTIMATED)
_WHOLE, _BY_SCENARIO = "all", "scenarios"


class Counting(NamedTuple):
    """How the commands of one scenario's trials are counted."""

    rules: str
    """The version of the rules; runs of 0.1.2 may have several, by commas."""
    exit_source: str
    """Where exit codes come from; runs of 0.1.2 may have several, by commas."""

    @property
    def words(self) -> str:
        """Return both in words, such as `rules 2, recorded`."""
        return f"rules {self.rules}, {self.exit_source}"


class Measured(Protocol):
    """What is read of a trial's metrics of layer 1."""

    @property
    def rules(self) -> int: ...
    @property
    def source(self) -> str: ...


def counting_of_trial(metrics: Measured) -> Counting | None:
    """Return how a trial's commands are counted; None if it wasn't measured."""
    if metrics.source == "none":
        return None
    return Counting(str(metrics.rules), _BY_SOURCE.get(metrics.source, REPORTED))


def choose_countings(trials: Iterable[tuple[int, Measured]]) -> dict[int, Counting | None]:
    """Return how the trials of each scenario are counted: as most of them are, on a tie by the better source."""
    countings: defaultdict[int, Counter[Counting]] = defaultdict(Counter)
    for scenario, metrics in trials:
        known = countings[scenario]
        if counting := counting_of_trial(metrics):
            known[counting] += 1
    return {
        scenario: max(
            known,
            key=lambda each: (known[each], -_BEST_FIRST.index(each.exit_source), int(each.rules)),
            default=None,
        )
        for scenario, known in countings.items()
    }


def counts_otherwise(metrics: Measured, counting: Counting | None) -> bool:
    """Return whether a trial is measured, but not as its scenario's trials count."""
    return counting_of_trial(metrics) not in (None, counting)


def as_stored(by_scenario: Mapping[int, Counting | None]) -> dict[str, Any]:
    """Return what is stored with a run: one value for all scenarios, or one for each by its key. One query at most."""
    known = set(by_scenario.values())
    if len(known) <= 1:
        only = next(iter(known), None)
        return {_WHOLE: list(only) if only else None}
    keys = dict(Scenario.objects.filter(pk__in=by_scenario).values_list("pk", "key"))
    return {
        _BY_SCENARIO: {keys[pk]: list(each) if each else None for pk, each in sorted(by_scenario.items())}
    }


def counting_of(run: Mapping[str, Any] | None, key: str) -> Counting | None:
    """Return how a scenario is counted, by its key, from `Run.counting`; None if nothing was measured."""
    if not run:
        return None
    values = run[_WHOLE] if _WHOLE in run else run[_BY_SCENARIO].get(key)
    return _counting(values) if values else None


def _counting(values: Sequence[Any]) -> Counting:
    # Archives of 0.1.2 have further values.
    return Counting(*values[:2])


def countings_of(run: Mapping[str, Any] | None) -> list[Counting]:
    """Return the run's different ways of counting."""
    if not run:
        return []
    rows = [run[_WHOLE]] if _WHOLE in run else list(run[_BY_SCENARIO].values())
    return sorted({_counting(each) for each in rows if each})


def counts_alike(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Return whether two runs' commands are counted alike."""
    return countings_of(one) == countings_of(other)


def list_exit_sources(run: Mapping[str, Any] | None) -> str:
    """Return the sources of exit codes over the run's scenarios, such as `recorded`."""
    return ", ".join(dict.fromkeys(each.exit_source for each in countings_of(run) if each.exit_source))


def list_rule_versions(run: Mapping[str, Any] | None) -> str:
    """Return the versions of the rules over the run's scenarios, such as `2`; empty if nothing was measured."""
    return ", ".join(dict.fromkeys(each.rules for each in countings_of(run)))


def why_not_recorded(notes: Iterable[object]) -> str:
    """Return why a trial's tool was not recorded, from its notes; empty if it was, or if nothing is known."""
    reasons = (each for each in notes if isinstance(each, str) and each.startswith(NOT_RECORDED))
    return next(reasons, "").removeprefix(NOT_RECORDED)


def find_common_exit_sources(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, keys: Iterable[str]
) -> list[str]:
    """Return the sources of exit codes by which the scenarios of two runs are compared, without those that can't be."""
    pairs = ((counting_of(before, key), counting_of(after, key)) for key in keys)
    return list(dict.fromkeys(old.exit_source for old, new in pairs if old and old == new))


def compared_by(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Return by which exit codes two runs' layer 1 is compared, as a sentence; empty where neither counts any."""
    keys = {key for run in (before, after) for key in (run or {}).get(_BY_SCENARIO, ())} or {""}
    if sentence := describe_exit_sources(find_common_exit_sources(before, after, sorted(keys))):
        return sentence
    return "" if counts_alike(before, after) else NOT_COMPARED


class CommandReaders(NamedTuple):
    """The scenarios of a suite version in which something beside layer 1 reads the commands, by key."""

    gates: frozenset[str] = frozenset()
    composites: frozenset[str] = frozenset()
    keys: Mapping[int, str] = {}
    """The key of each scenario by its primary key."""


_NO_READERS = CommandReaders()


def with_countings(
    standards: tuple[Mapping[str, Standard], Mapping[str, Standard]],
    countings: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
    readers: tuple[CommandReaders | None, CommandReaders | None],
) -> tuple[dict[str, Standard], dict[str, Standard]]:
    """Return two runs' standards by key with how both count the commands of the scenarios that both have."""
    old, new = (dict(each) for each in standards)
    one, other = (each or _NO_READERS for each in readers)
    for key in old.keys() & new.keys():
        old[key], new[key] = with_counting(
            old[key],
            new[key],
            (counting_of(countings[0], key), counting_of(countings[1], key)),
            gate=key in one.gates or key in other.gates,
            composite=key in one.composites or key in other.composites,
        )
    return old, new


def read_command_readers(versions: Iterable[int]) -> dict[int, CommandReaders]:
    """Return what reads commands in each suite version. One query."""
    entries = SuiteEntry.objects.filter(suite_version__in=tuple(versions))
    content = "scenario_version__content__criteria"
    columns = ("suite_version_id", "scenario_version__scenario", "scenario_version__scenario__key")
    by_version: dict[int, tuple[set[str], set[str], dict[int, str]]] = {}
    for version, pk, key, gates, composite in entries.values_list(
        *columns, f"{content}__gates", f"{content}__composite"
    ):
        readers = by_version.setdefault(version, (set(), set(), {}))
        readers[2][pk] = key
        if any(each.get("type") == READS_COMMANDS for each in gates or ()):
            readers[0].add(key)
        if composite and composite.get("interaction_weight", 1):
            readers[1].add(key)
    return {
        version: CommandReaders(frozenset(gates), frozenset(composites), keys)
        for version, (gates, composites, keys) in by_version.items()
    }


def with_counting(
    old: Standard,
    new: Standard,
    pair: tuple[Counting | None, Counting | None],
    *,
    gate: bool,
    composite: bool,
) -> tuple[Standard, Standard]:
    """Return a scenario's standards with how both runs count its commands, where they differ."""
    before, after = pair
    if before is None or after is None or before == after:
        return old, new
    one, other = (
        standard._replace(
            rules=counting.rules,
            ends=counting.exit_source,
            gate_counting=counting.words if gate else "",
            composite_counting=counting.words if composite else "",
        )
        for standard, counting in ((old, before), (new, after))
    )
    return one, other


def describe_exit_sources(sources: Sequence[str]) -> str:
    """Return by which exit codes layer 1 is compared, as a sentence; empty if unknown."""
    words = {
        RECORDED: "recorded exit codes",
        REPORTED: "exit codes that the agent reported",
        ESTIMATED: "exit codes estimated from text",
    }
    phrases = [words.get(each, each) for each in sources]
    return f"Tool use is compared by {' and '.join(phrases)}." if phrases else ""
