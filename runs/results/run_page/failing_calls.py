"""Read one subcommand's failing calls in a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Case, Count, QuerySet, When, Window
from django.db.models.functions import Left, Length

from evalhub.lib.limits import LARGEST_FILE, LONGEST_NAME
from evaluators.tool_use.attempts import call_message
from evaluators.tool_use.mcp_calls import McpFailure
from runs.models import CommandRecord, TranscriptRecord
from runs.models.trial import TrialState
from runs.results.trial_page.timeline import CallLocation, address, places

MOST = 50
"""Most calls shown."""
LARGEST = 20_000_000
"""Largest total in bytes."""
LONGEST_LINE = 400
"""Characters read from a command."""


class StoredFailure(NamedTuple):
    """A failed call as stored."""

    trial: int
    scenario: str
    trial_index: int
    n: int
    line: str
    exit_code: int | None
    event: int | None
    failure: str
    total: int
    """Total number of failed calls."""


@dataclass(frozen=True)
class FailingCall:
    """A failed call with its place in the trial."""

    scenario: str
    trial: int
    number: int
    """Number of the trial among its scenario's."""
    line: str
    exit_code: int | None
    message: str
    """The reason from its output; empty if not stored."""
    failure: str
    """Why a call of an MCP server failed, in words; empty for other tools."""
    address: str
    """Link to the command, relative to its trial's page."""


@dataclass(frozen=True)
class FailingCalls:
    """A subcommand's calls with a nonzero exit code, by scenario and trial."""

    subcommand: str
    calls: list[FailingCall]
    total: int

    @property
    def classes(self) -> list[tuple[str, int]]:
        """Return how many of the shown calls of an MCP server failed for each reason, the most frequent first."""
        return Counter(call.failure for call in self.calls if call.failure).most_common()

    @property
    def more(self) -> int:
        """Return how many are not shown."""
        return self.total - len(self.calls)


def failing_calls(run: int, subcommand: str) -> FailingCalls:
    """Return the failing calls as counted in a run's subcommands: without help and trials with errors.

    Two queries, one if no call failed.
    """
    failures = [StoredFailure(*row) for row in _failures(run, subcommand[:LONGEST_NAME])]
    locations = _places({each.trial for each in failures})
    calls = [_call(each, locations.get(each.trial, {})) for each in failures]
    return FailingCalls(subcommand, calls, failures[0].total if failures else 0)


def _failures(run: int, subcommand: str) -> QuerySet[CommandRecord, Any]:
    decided = CommandRecord.objects.filter(
        trial__run=run,
        trial__round=0,
        trial__state=TrialState.FINISHED,
        trial__outcome__in=("pass", "fail"),
    )
    failed = decided.filter(subcommand=subcommand, failed=True, help=False)
    in_order = failed.order_by("trial__scenario__key", "trial__index", "n")
    columns = ("trial_id", "trial__scenario__key", "trial__index", "n")
    line = Left("line", LONGEST_LINE)
    return in_order.values_list(*columns, line, "exit_code", "event", "failure", Window(Count("pk")))[:MOST]


def _transcripts(trials: tuple[int, ...]) -> QuerySet[TranscriptRecord, Any]:
    transcripts = TranscriptRecord.objects.filter(trial__in=trials).order_by("pk").alias(size=Length("data"))
    return transcripts.values_list("trial_id", Case(When(size__lte=LARGEST_FILE, then="data")))


def _places(trials: Iterable[int]) -> dict[int, dict[int, CallLocation] | None]:
    """Return the places of each trial's calls; None if the transcript is too long."""
    keys, left = tuple(sorted(trials)), LARGEST
    locations: dict[int, dict[int, CallLocation] | None] = {}
    for trial, data in _transcripts(keys) if keys else ():
        events, read = TranscriptRecord.events_of(bytes(data), left) if data and left > 0 else (None, 0)
        left -= read
        locations[trial] = None if events is None else places(events)
    return locations


def _call(failure: StoredFailure, locations: dict[int, CallLocation] | None) -> FailingCall:
    place = locations.get(failure.event) if locations and failure.event is not None else None
    return FailingCall(
        scenario=failure.scenario,
        trial=failure.trial,
        number=failure.trial_index + 1,
        line=failure.line,
        exit_code=failure.exit_code,
        message=call_message(place.call) if place else "",
        failure=McpFailure(failure.failure).label if failure.failure else "",
        address=place.address if place else _address(failure, locations),
    )


def _address(failure: StoredFailure, locations: dict[int, CallLocation] | None) -> str:
    """Return the link to a call without an event."""
    # Without calls the timeline shows only commands.
    return address(failure.n, failure.n + 1) if locations == {} else "#transcript"
