"""The usage page: the tool's subcommands as a heat map, and the flags that agents confused."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import Cell, Table, chosen_table
from evalhub.web.fragments import page_or_fragment
from runs.results.filter_choices import choices
from runs.results.run_filters import RunListFilters, active_run_filters
from runs.results.usage import MOST_RUNS, SubcommandUsage, describe_confusion, markdown_of, usage

SUBCOMMAND_COLUMNS = (
    *(
        "subcommand",
        "calls",
        "failed",
        "error_rate",
        "error_rate_low",
        "error_rate_high",
        "error_rate_shrunken",
    ),
    *(
        "error_rate_change",
        "first_try",
        "retries_after_failure",
        "help_before",
        "help_after",
        "median_attempts",
        "unknown",
    ),
)
FLAG_COLUMNS = ("subcommand", "kind", "typed", "meant", "calls", "trials", "runs", "newest_run")


@require_safe
@project_page()
def tool_usage(request: ProjectRequest) -> HttpResponseBase:
    """Show how agents used the tool in the newest runs that match the filters."""
    project, filters = request.access.project, RunListFilters.of(request.GET)
    compare = request.GET.get("compare") == "baseline"
    found = usage(project, filters, compare=compare)
    tables = {
        "subcommands": lambda: Table(f"{project.slug}-subcommands", SUBCOMMAND_COLUMNS, _subcommands(found)),
        "flags": lambda: Table(f"{project.slug}-flags", FLAG_COLUMNS, _flags(found)),
    }
    if table := chosen_table(request, tables):
        return table
    if request.GET.get("format") == "md":
        return HttpResponse(markdown_of(found.confusions), content_type="text/markdown; charset=utf-8")
    available = choices(project)
    context = {
        "usage": found,
        "confusions": [(row, describe_confusion(row)) for row in found.confusions],
        "filters": filters,
        "in_force": active_run_filters(filters, available),
        "choices": available,
        "compare": compare,
        "most_runs": MOST_RUNS,
    }
    return page_or_fragment(request, "results/usage/usage.html", "results/usage/_usage.html", context)


def _subcommands(found: SubcommandUsage) -> Iterator[tuple[Cell, ...]]:
    for row in found.subcommands:
        counts = row.counts
        yield (
            *(row.name, counts.calls, counts.errors),
            *(row.error_rate, row.errors.lower, row.errors.upper),
            *(row.shrunken, row.change, row.first_try),
            *(counts.rate(counts.retries_after_failure), counts.helps_before),
            *(counts.helps - counts.helps_before, row.median_tries, counts.unknown),
        )


def _flags(found: SubcommandUsage) -> Iterator[tuple[Cell, ...]]:
    for row in found.confusions:
        yield (
            *(row.subcommand, row.kind.value, row.typed, row.meant, row.calls, row.trials, row.runs),
            row.newest_run,
        )
