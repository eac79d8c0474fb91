"""How agents used the tool, as a page and by REST: subcommands with their failures, and confused flags."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.http import HttpResponse, HttpResponseBase
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from ninja import Query, Router, Schema

from evalhub.lib.numbers import format_count
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.middleware import page_or_fragment
from evalhub.web.rest.errors import declare_answers
from evalhub.web.states import draw_calls
from runs.results.filter_schemas import RunFilterValues
from runs.results.run_filters import RunListFilters, active_run_filters, read_filter_choices
from runs.results.usage import (
    MOST_RUNS,
    ConfusionRow,
    SubcommandCalls,
    SubcommandUsage,
    UsageComparison,
    UsageRow,
    describe_confusion,
    markdown_of,
    name_confusion,
    read_usage,
)

router = Router(tags=["usage"])


class UsageFilters(RunFilterValues):
    """Which runs count: the newest 100 finished ones that match."""

    compare: bool = False
    """Also give the error rate in the runs' baselines."""


class SubcommandUsageOut(Schema):
    subcommand: str
    calls: int
    errors: int
    unknown: int
    """Calls whose exit code is unknown; in no error rate and no first-try success."""
    error_rate: float | None
    """Of the calls whose end is known; null if none is."""
    error_rate_low: float
    """The lower end of the 95 % interval (Wilson)."""
    error_rate_high: float
    error_rate_shrunken: float
    """Drawn towards that of all subcommands, the more the fewer calls there are."""
    error_rate_change: float | None
    """Difference to the baselines; null without `compare`, calls there, or known ends."""
    first_try: float | None
    """Of the calls whose end is known; null if none is."""
    retries_after_failure: float
    helps_before: int
    helps_after: int
    median_attempts: float | None


class ToolUsageOut(Schema):
    runs: int
    subcommands: list[SubcommandUsageOut]
    """Those that fail most first."""
    confusions: list[ConfusionRow]
    """The most frequent first."""


@router.get("/usage", auth=Bearer(), response=declare_answers(ToolUsageOut))
def get_usage(request: ApiRequest, filters: Query[UsageFilters]) -> dict[str, Any]:
    """Get how agents used the tool: its subcommands, and the flags and arguments that they confused."""
    compare = UsageComparison.BASELINES if filters.compare else UsageComparison.NOTHING
    tool_usage = read_usage(request.access.project, filters.filters(), compare=compare)
    subcommands = [
        {
            "subcommand": row.name,
            "calls": row.counts.calls,
            "errors": row.counts.errors,
            "unknown": row.counts.unknown,
            "error_rate": row.error_rate,
            "error_rate_low": row.errors.lower,
            "error_rate_high": row.errors.upper,
            "error_rate_shrunken": row.shrunken,
            "error_rate_change": row.change,
            "first_try": row.first_try,
            "retries_after_failure": row.counts.rate(row.counts.retries_after_failure),
            "helps_before": row.counts.helps_before,
            "helps_after": row.counts.helps - row.counts.helps_before,
            "median_attempts": row.median_tries,
        }
        for row in tool_usage.subcommands
    ]
    return {"runs": tool_usage.runs, "subcommands": subcommands, "confusions": tool_usage.confusions}


CONFUSED_SHOWN = 2
"""Confusions beside a subcommand; all are in their table."""
COMPARISONS = (
    (UsageComparison.BASELINES.value, "baselines"),
    (UsageComparison.VERSIONS.value, "version before"),
)


@require_safe
@project_page()
def tool_usage(request: ProjectRequest) -> HttpResponseBase:
    """Show how agents used the tool in the newest runs that match the filters."""
    project, filters = request.access.project, RunListFilters.of(request.GET)
    asked = request.GET.get("compare", "")
    compare = UsageComparison(asked) if asked in set(UsageComparison) else UsageComparison.NOTHING
    tool_use = read_usage(project, filters, compare=compare)
    if request.GET.get("format") == "md":
        return HttpResponse(markdown_of(tool_use.confusions), content_type="text/markdown; charset=utf-8")
    available = read_filter_choices(project)
    context = {
        "usage": tool_use,
        "confusions": [(row, describe_confusion(row)) for row in tool_use.confusions],
        "rows": [_draw_row(row, tool_use) for row in tool_use.by_failures],
        "comparisons": COMPARISONS,
        "filters": filters,
        "in_force": active_run_filters(filters, available),
        "choices": available,
        "compare": compare,
        "most_runs": MOST_RUNS,
    }
    return page_or_fragment(request, "results/usage/usage.html", "results/usage/_usage.html", context)


class DrawnSubcommand(NamedTuple):
    """A subcommand with its picture and what is confused in its calls."""

    row: UsageRow
    picture: SafeString
    confused: list[tuple[str, int]]
    """The most frequent confusions, and in how many calls each was made."""


def _draw_row(row: UsageRow, tool_use: SubcommandUsage) -> DrawnSubcommand:
    confused = tool_use.confused_at(row.name)[:CONFUSED_SHOWN]
    halves = [_half(row.counts)]
    words = _words(row.counts)
    if tool_use.compared:
        halves = [_half(row.before or SubcommandCalls()), *halves]
        words = f"before: {_words(row.before or SubcommandCalls())}; now: {words}"
    picture = draw_calls(halves, most=tool_use.most_calls, label=words)
    return DrawnSubcommand(row, picture, [(name_confusion(each), each.calls) for each in confused])


def _half(counts: SubcommandCalls) -> tuple[int, int]:
    return counts.calls, counts.errors


def _words(counts: SubcommandCalls) -> str:
    return f"{format_count(counts.calls, 'call')}, {counts.errors:,} failed"
