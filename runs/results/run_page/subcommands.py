"""A run's subcommands against its baseline, their failing calls, and diagnosed patterns with reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib import messages
from django.db.models import Case, Count, QuerySet, When, Window
from django.db.models.functions import Left, Length
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evalhub.lib.limits import LARGEST_FILE, LONGEST_NAME
from evalhub.teams.access import ProjectRequest, project_page
from evaluators.statistics.run_diagnosis import DiagnosisThresholds, Finding
from evaluators.tool_use.attempts import call_message
from evaluators.tool_use.diagnosis import ERRING, RETRIES, threshold_sentence
from evaluators.tool_use.mcp_calls import McpFailure
from runs.errors import RequestError
from runs.models import CommandRecord, Run, SubcommandMeasure, TranscriptRecord
from runs.models.trial import TrialState
from runs.results.counting import FEWEST_KNOWN, counts_alike
from runs.results.digests import Digest, RunTrials
from runs.results.find_run import find_shown_run
from runs.results.subcommand_totals import SubcommandTotal
from runs.results.trial_page.timeline import CallLocation, call_address, find_call_places
from runs.review.diagnosis_reviews import NO_REVIEW, Precision, precisions, review_finding

FEWEST_CALLS = 5
"""Fewest calls for a meaningful rate."""


@dataclass(frozen=True)
class SubcommandRow:
    """One subcommand of the tool; rates are per call, those of errors and first tries per known end."""

    name: str
    calls: int
    failed: int
    """Failed calls."""
    unknown: int
    """Calls whose end is unknown."""
    errors: float | None
    """None if fewer than `FEWEST_KNOWN` ends are known."""
    change: float | None
    """Difference of the error rate to the baseline's over shared scenarios; None if that made no calls."""
    first_tries: float | None
    """None if fewer than `FEWEST_KNOWN` ends are known."""
    retries: float
    helps: int
    tries: float | None
    """Median tries until success."""
    message: str
    """Its most frequent error message."""
    messages: int
    """How often that message occurred."""
    few: bool
    heat: int
    """1 to 5: the share of failing calls, in steps of 10 %."""

    @property
    def known(self) -> int:
        """Return how many ends are known."""
        return self.calls - self.unknown


def count_subcommands(run: Run, read: RunTrials) -> list[SubcommandRow]:
    """Return the run's subcommands, most failing first.

    One query with a baseline.
    """
    changes = _changes(run, read)
    rows = [_row(each, changes.get(each.name)) for each in read.digest.subcommands]
    return sorted(rows, key=lambda row: (row.few, -(row.errors or 0.0), row.name))


def _changes(run: Run, read: RunTrials) -> dict[str, float]:
    """Return the error rates' changes from the baseline over the scenarios of both. One query with a baseline."""
    if not run.baseline_id or not (run.baseline is None or counts_alike(run.counting, run.baseline.counting)):
        return {}
    return _changes_of_shared(run.pk, run.baseline_id, read.before.keys() & read.outcomes.keys())


def _differences(
    after: Mapping[str, tuple[int, int]], before: Mapping[str, tuple[int, int]]
) -> dict[str, float]:
    shares = ((name, _share(*after[name]), _share(*before[name])) for name in after.keys() & before.keys())
    return {name: new - old for name, new, old in shares if new is not None and old is not None}


def _changes_of_shared(run: int, baseline: int, scenarios: Collection[str]) -> dict[str, float]:
    """Return the error rates' changes over the scenarios of both runs. One query."""
    counts: dict[tuple[int, str], tuple[int, int]] = {}
    for owner, name, scenario, calls, errors, unknown in _of_scenarios((run, baseline)):
        if scenario in scenarios:
            before = counts.get((owner, name), (0, 0))
            counts[owner, name] = (before[0] + calls - unknown, before[1] + errors)
    after, before_it = (
        {name: each for (owner, name), each in counts.items() if owner == key} for key in (run, baseline)
    )
    return _differences(after, before_it)


def _share(known: int, errors: int) -> float | None:
    """Return the share of failed calls; None if too few ends are known."""
    return errors / known if known >= FEWEST_KNOWN else None


class CallColumns(NamedTuple):
    """Which further columns have values; empty ones are hidden."""

    tries: bool
    messages: bool


def call_columns(rows: Sequence[SubcommandRow]) -> CallColumns:
    """Return the columns that have values."""
    return CallColumns(any(row.tries is not None for row in rows), any(row.message for row in rows))


def total_row(rows: Sequence[SubcommandRow]) -> SubcommandRow | None:
    """Return the total of several subcommands, without tries; None for fewer than two."""
    calls, unknown = sum(row.calls for row in rows), sum(row.unknown for row in rows)
    if len(rows) < 2 or not calls:
        return None
    share = _share(calls - unknown, sum(row.failed for row in rows))
    # Rows without a rate have too few calls to matter.
    tried = [row for row in rows if row.first_tries is not None]
    known = sum(row.known for row in tried)
    return SubcommandRow(
        name="",
        calls=calls,
        failed=sum(row.failed for row in rows),
        unknown=unknown,
        errors=share,
        change=None,
        first_tries=sum((row.first_tries or 0.0) * row.known for row in tried) / known if known else None,
        retries=sum(row.retries * row.calls for row in rows) / calls,
        helps=sum(row.helps for row in rows),
        tries=None,
        message="",
        messages=0,
        few=calls < FEWEST_CALLS,
        heat=_heat(share),
    )


def _of_scenarios(runs: tuple[int, ...]) -> QuerySet[SubcommandMeasure, Any]:
    measures = SubcommandMeasure.objects.filter(run__in=runs, scenario__isnull=False)
    return measures.values_list("run", "subcommand", "scenario__key", "calls", "errors", "unknown")


def _row(total: SubcommandTotal, change: float | None) -> SubcommandRow:
    calls = total.calls or 1
    known = total.calls - total.unknown
    share = _share(known, total.errors)
    return SubcommandRow(
        name=total.name,
        calls=total.calls,
        failed=total.errors,
        unknown=total.unknown,
        errors=share,
        change=change,
        first_tries=total.first_tries / known if known >= FEWEST_KNOWN else None,
        retries=total.retries_after_failure / calls,
        helps=total.helps,
        tries=total.tries,
        message=total.message,
        messages=total.messages,
        few=total.calls < FEWEST_CALLS,
        heat=_heat(share),
    )


def _heat(share: float | None) -> int:
    return min(5, 1 + int((share or 0.0) * 10))


_WORDS = {"right": True, "wrong": False, "": None}


@dataclass(frozen=True)
class ShownFinding:
    """A finding on its run's page."""

    finding: Finding
    thresholds: str
    """The pattern's thresholds in a sentence; empty for an unknown pattern."""
    precision: Precision

    @property
    def links_to_failing(self) -> bool:
        """Return whether its commands' failing calls show it."""
        return self.finding.pattern in (*ERRING, RETRIES)


def shown_findings(run: Run, digest: Digest) -> list[ShownFinding]:
    """Return the findings of a run as `find_run` returns it. One query if there are any and some were reviewed."""
    findings = digest.diagnosis
    reviewed = precisions(run) if findings and vars(run)["has_reviews"] else {}
    thresholds = digest.thresholds or DiagnosisThresholds()
    return [
        ShownFinding(
            finding,
            threshold_sentence(finding.pattern, thresholds.limits),
            reviewed.get(finding.pattern, NO_REVIEW),
        )
        for finding in findings
    ]


@require_POST
@project_page("review")
def diagnosis_review(request: ProjectRequest, pk: int, pattern: str) -> HttpResponse:
    """Store whether a finding is right."""
    run, word = find_shown_run(request, pk), request.POST.get("word", "")
    if word not in _WORDS:
        messages.error(request, "Choose right or wrong.")
    else:
        try:
            review_finding(run, pattern, is_right=_WORDS[word], by=request.user)
        except RequestError as error:
            messages.error(request, str(error))
    return redirect(f"{run.get_absolute_url()}#diagnosis")


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
        locations[trial] = None if events is None else find_call_places(events)
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
    return call_address(failure.n, failure.n + 1) if locations == {} else "#transcript"
