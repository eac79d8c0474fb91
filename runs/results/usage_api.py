"""How agents used the tool's subcommands and flags."""

from __future__ import annotations

from typing import Any

from ninja import Query, Router, Schema

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers
from runs.results.filter_schemas import RunFilterValues
from runs.results.usage import Comparison, ConfusionRow, usage

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
    compare = Comparison.BASELINES if filters.compare else Comparison.NOTHING
    tool_usage = usage(request.access.project, filters.filters(), compare=compare)
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
