"""Digests of closed runs as pages read them, each decoded once while it is looked at again and again.

A page of one run reads those of four or five, and so does the page of the next one. What is remembered is found by
the digest's own bytes, so a digest that was written anew is read anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import itemgetter
from typing import TypeVar

import msgspec
from django.db.models import QuerySet
from msgspec import Struct

from runs.models import RunDigest
from runs.summaries.digests import FINISHED, Digest
from runs.summaries.subcommands import SubcommandTotal

Read = TypeVar("Read")
REMEMBERED = 32
LONGEST = 65_536
"""Bytes of a digest that is remembered: a web process has little memory, and a longer one is rare."""


class EndedTrial(Struct, array_like=True, frozen=True, gc=False):
    """What is read of a trial of another run: how a `DigestedTrial` begins."""

    key: str
    stands: str
    outcome: str
    pk: int
    scenario: int


class _Ended(Struct):
    trials: list[EndedTrial]


class _Subcommands(Struct):
    subcommands: list[SubcommandTotal] | None = None


_digest = msgspec.json.Decoder(Digest)
_ended = msgspec.json.Decoder(_Ended)
_subcommands = msgspec.json.Decoder(_Subcommands)


def _remembering(decode: Callable[[bytes], Read]) -> Callable[[bytes], Read]:
    remembered = lru_cache(maxsize=REMEMBERED)(decode)
    return lambda content: remembered(content) if len(content) <= LONGEST else decode(content)


@_remembering
def kept_digest(content: bytes) -> Digest:
    """Return what `write_digest` has kept; nobody may change it."""
    return _digest.decode(content)


@_remembering
def ended_trials(content: bytes) -> tuple[EndedTrial, ...]:
    """Return the trials that ended, in their order of work."""
    return tuple([trial for trial in _ended.decode(content).trials if trial.stands == FINISHED])


@_remembering
def outcomes_by_key(content: bytes) -> dict[str, list[str]]:
    """Return the outcomes of the trials that ended, by their scenario's key; nobody may change it."""
    return by_key((trial.key, trial.outcome) for trial in ended_trials(content))


def by_key(outcomes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return outcomes by their scenario's key, in their order."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for key, outcome in outcomes:
        found[key].append(outcome)
    return dict(found)


@_remembering
def ended_by_scenario(content: bytes) -> dict[int, list[tuple[int, str]]]:
    """Return key and outcome of the trials that ended, by scenario, in the order of their keys."""
    return by_scenario((trial.scenario, trial.pk, trial.outcome) for trial in ended_trials(content))


def by_scenario(trials: Iterable[tuple[int, int, str]]) -> dict[int, list[tuple[int, str]]]:
    """Return key and outcome of trials by scenario, in the order of their keys."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for scenario, pk, outcome in sorted(trials, key=itemgetter(1)):
        found[scenario].append((pk, outcome))
    return dict(found)


@_remembering
def subcommand_totals(content: bytes) -> list[SubcommandTotal] | None:
    """Return the run's subcommands, None where the digest was written before they were in it."""
    return _subcommands.decode(content).subcommands


def contents_of(runs: tuple[int, ...]) -> dict[int, bytes]:
    """Return the digests of those of the runs that have one. One query."""
    return {run: bytes(content) for run, content in _contents(runs)}


def _contents(runs: tuple[int, ...]) -> QuerySet[RunDigest, tuple[int, bytes | memoryview[int]]]:
    return RunDigest.objects.filter(run__in=runs).values_list("run_id", "content")
