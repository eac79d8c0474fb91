"""Say what differs in scenarios that pass less often: the first other command, and the reasons.

A command that passed before and fails now comes first. Also reads and writes changes as a run stores them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from evaluators.redaction import redact_patterns
from evaluators.statistics.measure_change import ComparisonTest, MeasureChange
from evaluators.tool_use.command_alignment import command_key
from runs.compare.measure_changes import HEADLINE, PASS
from runs.models import Change, CommandRecord, Run, Trial
from runs.models.trial import TrialState
from runs.results.digests import Digest
from runs.results.failure_reasons import reasons_of
from runs.results.rates import ScenarioPair


def change_json(change: MeasureChange) -> dict[str, Any]:
    """Return a change as JSON: sizes from 0 to 1, shares of the value before on the relative scale."""
    document: dict[str, Any] = msgspec.to_builtins(change)
    return document


def change_from_json(stored: Mapping[str, Any]) -> MeasureChange:
    """Return a change from `change_json`."""
    test = _OLD_TESTS.get(stored["test"], stored["test"])
    return msgspec.convert({**stored, "test": test}, MeasureChange)


_OLD_TESTS = {"sign_flip": ComparisonTest.WITHIN_SCENARIOS, "mcnemar": ComparisonTest.WITHIN_SCENARIOS}
"""Tests of older releases."""


def stored_changes(run: int) -> list[MeasureChange]:
    """Return a run's changes against its baseline, headline measures first; none of older releases. One query."""
    rows = Change.objects.filter(run=run, scenario=None).values_list("detail", flat=True)
    changes = [change_from_json(detail) for detail in rows if "measure" in detail]
    order = {name: place for place, name in enumerate(HEADLINE)}
    return sorted(changes, key=lambda each: (order.get(each.measure, len(order)), each.measure))


def pass_changes(runs: Sequence[int]) -> dict[int, MeasureChange]:
    """Return the pass rate's stored change of each run that has one. One query."""
    layer, _, name = PASS.partition("/")
    rows = Change.objects.filter(run__in=runs, scenario=None, measure__layer=layer, measure__name=name)
    stored = rows.values_list("run", "detail")
    return {run: change_from_json(detail) for run, detail in stored if "measure" in detail}


LONGEST = 160
"""Characters of a command or its message."""


class _Command(NamedTuple):
    n: int
    line: str
    subcommand: str
    exit_code: int | None


def failing_commands(pairs: Collection[tuple[int, int]]) -> dict[int, str]:
    """Return, by failed trial, a clause about its first command that fails now and exited with 0 before.

    `pairs` are trials that passed and failed. Two queries, none without pairs.
    """
    if not pairs:
        return {}
    commands: defaultdict[int, list[_Command]] = defaultdict(list)
    rows = CommandRecord.objects.filter(trial__in={pk for pair in pairs for pk in pair}, help=False)
    for trial, *row in rows.order_by("trial", "n").values_list("trial", *_Command._fields):
        commands[trial].append(_Command(*row))
    found = {
        failed: command
        for passed, failed in pairs
        if (command := _newly_failing(commands[passed], commands[failed]))
    }
    messages = dict(Trial.objects.filter(pk__in=found).values_list("pk", "detail__messages")) if found else {}
    return {trial: _describe(command, messages.get(trial)) for trial, command in found.items()}


def _newly_failing(before: Sequence[_Command], now: Sequence[_Command]) -> _Command | None:
    worked = {_key(each) for each in before if each.exit_code == 0}
    worked -= {_key(each) for each in before if each.exit_code}
    return next((each for each in now if each.exit_code and _key(each) in worked), None)


def _key(command: _Command) -> str:
    return command_key(command.line, command.subcommand)


def _describe(command: _Command, messages: Any) -> str:
    line = redact_patterns(_cut(command.line))
    message = _message(str((messages or {}).get(str(command.n), "")), command.subcommand)
    if not message:
        return f"`{line}`: same command, exit 0 → {command.exit_code}"
    return f"`{line}` exits with {command.exit_code}: {message}; passed before"


def _message(text: str, subcommand: str) -> str:
    """Return a message's first line without the names of tool and subcommand before it."""
    line = next(iter(text.strip().splitlines()), "")
    head, colon, rest = line.partition(": ")
    if colon and subcommand and head.split()[-1:] == [subcommand]:
        line = rest
    return redact_patterns(_cut(line.rstrip(".")))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


MOST_SCENARIOS = 20
"""Most scenarios described; the run's page has all."""


@dataclass(frozen=True)
class FirstDifference:
    """The first command that differs between a passed and a failed trial; None where one had no more commands."""

    number: int
    base: str | None
    new: str | None


@dataclass(frozen=True)
class RegressedScenario(ScenarioPair):
    """A scenario that passes less often than before, or one that fails where there is no baseline."""

    difference: FirstDifference | None = None
    base_reasons: tuple[str, ...] = ()
    new_reasons: tuple[str, ...] = ()
    command: str = ""
    """The command that fails now and passed before, as a clause; empty if none does."""


@dataclass(frozen=True)
class ChangedScenario(ScenarioPair):
    """A scenario that passes less often than before, or more often, with what there is to say of it."""

    reason: str = ""
    """Why its first failing trial failed; empty if unknown."""
    command: str = ""
    """The first command of a failing trial that differs from those of a passing one; empty if unknown."""
    instead_of: str = ""
    trial: int | None = None
    """The first that failed; of one that got better, the first."""
    passed: int | None = None
    """One that passed before."""
    state: str = ""
    """Regressed or improved where the verdict's table of scenarios names it, else its change where a page shows this."""


def worst_losses(old: Digest, new: Digest, most: int) -> list[ChangedScenario]:
    """Return the scenarios of two runs that lost the largest share of their passes. No query."""
    reasons = {trial.key: trial.lost[0] for trial in reversed(new.trials) if trial.lost}
    passed, failed = first_with(old, "pass"), first_with(new, "fail")
    return [
        replace(
            each, reason=reasons.get(each.key, ""), trial=failed.get(each.key), passed=passed.get(each.key)
        )
        for each in _changed(old, new, -1)[:most]
    ]


def with_failing_commands(broken: Sequence[ChangedScenario]) -> list[ChangedScenario]:
    """Return scenarios whose reason begins with the command that fails now, where one does. At most two queries."""
    pairs = {(each.passed, each.trial) for each in broken if each.passed and each.trial}
    said = failing_commands(pairs)
    return [
        replace(
            each,
            reason=" ".join(filter(None, (f"{said[each.trial]}.", each.reason))),
            command="",
            instead_of="",
        )
        if each.trial in said
        else each
        for each in broken
    ]


def first_with(digest: Digest, outcome: str) -> dict[str, int]:
    """Return the first trial of each scenario that ended like this, by key."""
    return {each.key: each.pk for each in reversed(digest.ended) if each.outcome == outcome}


def largest_gains(old: Digest, new: Digest, most: int) -> list[ChangedScenario]:
    """Return the scenarios of two runs that won the largest share of passes. No query."""
    return _changed(old, new, 1)[:most]


def _changed(old: Digest, new: Digest, sign: int) -> list[ChangedScenario]:
    """Return the scenarios that pass more often, or with a negative sign less often, the largest difference first."""
    before, after = old.outcomes, new.outcomes
    both = [
        ChangedScenario(key, tuple(before[key]), tuple(after[key])) for key in before.keys() & after.keys()
    ]
    changed = [each for each in both if sign * each.gain > 0]
    return sorted(changed, key=lambda each: (-sign * each.gain, each.key))


@dataclass(frozen=True)
class _TrialResult:
    pk: int
    outcome: str
    reasons: tuple[str, ...]


def changes_of_run(run: int) -> dict[str, MeasureChange]:
    """Return the stored changes of a run's scenarios by key; none of older releases. One query."""
    rows = Change.objects.filter(run=run).exclude(scenario=None).order_by("pk")
    stored = rows.values_list("scenario__key", "detail")
    return {key: change_from_json(detail) for key, detail in stored if "measure" in detail}


def lost_keys(changes: Mapping[str, MeasureChange]) -> list[str]:
    """Return the scenarios that pass less often, the largest loss first."""
    lost = {key: change.effect for key, change in changes.items() if change.effect and change.effect < 0}
    return sorted(lost, key=lambda key: (lost[key], key))


def lost_scenarios(base: Run, new: Run, keys: Sequence[str]) -> list[RegressedScenario]:
    """Return what differs in these scenarios, at most `MOST_SCENARIOS`, without secrets. Up to five queries."""
    described = list(keys)[:MOST_SCENARIOS]
    before, after = _results(base, described), _results(new, described)
    pairs = {
        key: (_first(before.get(key, ()), "pass"), _first(after.get(key, ()), "fail")) for key in described
    }
    commands = _commands(trial.pk for pair in pairs.values() for trial in pair if trial)
    said = failing_commands([(old.pk, failed.pk) for old, failed in pairs.values() if old and failed])
    losses = {
        key: _describe_loss(key, before.get(key, ()), after.get(key, ()), pairs[key], commands)
        for key in described
    }
    return [
        replace(loss, command=said.get(failed.pk, "") if (failed := pairs[key][1]) else "")
        for key, loss in losses.items()
    ]


def failing_scenarios(run: Run) -> tuple[list[RegressedScenario], int]:
    """Return a run's failing scenarios, at most `MOST_SCENARIOS`, and the number of all. Two queries."""
    failed = Trial.objects.filter(run=run, round=0, outcome="fail").order_by("position", "pk")
    keys = list(dict.fromkeys(failed.values_list("scenario__key", flat=True)))
    results = _results(run, keys[:MOST_SCENARIOS])
    lost = [
        RegressedScenario(key, (), _outcomes(trials), new_reasons=_reasons(trials))
        for key, trials in results.items()
    ]
    return lost, len(keys)


def _describe_loss(
    key: str,
    before: Sequence[_TrialResult],
    after: Sequence[_TrialResult],
    pair: tuple[_TrialResult | None, _TrialResult | None],
    commands: Mapping[int, Sequence[str]],
) -> RegressedScenario:
    passed, failed = pair
    difference = (
        first_difference(commands.get(passed.pk, ()), commands.get(failed.pk, ()))
        if passed and failed
        else None
    )
    return RegressedScenario(
        key, _outcomes(before), _outcomes(after), difference, _reasons(before), _reasons(after)
    )


def first_difference(base: Sequence[str], new: Sequence[str]) -> FirstDifference | None:
    """Return the first command that differs; None if both are equal or a side has none recorded."""
    if not base or not new:
        return None
    for number, (before, after) in enumerate(zip_longest(base, new), 1):
        if before != after:
            return FirstDifference(number, before, after)
    return None


def _results(run: Run, keys: Sequence[str]) -> dict[str, list[_TrialResult]]:
    """Return the finished trials of these scenarios by key, in their order."""
    trials = Trial.objects.filter(run=run, round=0, scenario__key__in=keys, state=TrialState.FINISHED)
    rows = trials.order_by("position", "pk").values_list("scenario__key", "pk", "outcome", "scores")
    results: defaultdict[str, list[_TrialResult]] = defaultdict(list)
    for key, pk, outcome, scores in rows:
        reasons = tuple(map(redact_patterns, reasons_of(scores))) if outcome == "fail" else ()
        results[key].append(_TrialResult(pk, outcome, reasons))
    return dict(results)


def _commands(trials: Iterable[int]) -> dict[int, list[str]]:
    lines: defaultdict[int, list[str]] = defaultdict(list)
    rows = CommandRecord.objects.filter(trial__in=list(trials)).order_by("trial", "n")
    for trial, line in rows.values_list("trial", "line"):
        lines[trial].append(redact_patterns(line))
    return dict(lines)


def _first(results: Iterable[_TrialResult], outcome: str) -> _TrialResult | None:
    return next((each for each in results if each.outcome == outcome), None)


def _outcomes(results: Sequence[_TrialResult]) -> tuple[str, ...]:
    return tuple([each.outcome for each in results])


def _reasons(results: Iterable[_TrialResult]) -> tuple[str, ...]:
    """Return why the trials failed, each sentence once."""
    return tuple(dict.fromkeys(reason for result in results for reason in result.reasons))
