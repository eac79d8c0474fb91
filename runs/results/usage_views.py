"""The usage page: the tool's subcommands with their failures, and the flags that agents confused."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpResponse, HttpResponseBase
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from evalhub.lib.numbers import counted
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.call_bars import draw_calls
from evalhub.web.fragments import page_or_fragment
from runs.results.filter_choices import choices
from runs.results.run_filters import RunListFilters, active_run_filters
from runs.results.usage import (
    MOST_RUNS,
    Comparison,
    SubcommandCalls,
    SubcommandUsage,
    UsageRow,
    describe_confusion,
    markdown_of,
    name_confusion,
    usage,
)

CONFUSED_SHOWN = 2
"""Confusions beside a subcommand; all are in their table."""
COMPARISONS = (
    (Comparison.BASELINES.value, "baselines"),
    (Comparison.VERSIONS.value, "version before"),
)


@require_safe
@project_page()
def tool_usage(request: ProjectRequest) -> HttpResponseBase:
    """Show how agents used the tool in the newest runs that match the filters."""
    project, filters = request.access.project, RunListFilters.of(request.GET)
    asked = request.GET.get("compare", "")
    compare = Comparison(asked) if asked in set(Comparison) else Comparison.NOTHING
    tool_use = usage(project, filters, compare=compare)
    if request.GET.get("format") == "md":
        return HttpResponse(markdown_of(tool_use.confusions), content_type="text/markdown; charset=utf-8")
    available = choices(project)
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
    return f"{counted(counts.calls, 'call')}, {counts.errors:,} failed"
