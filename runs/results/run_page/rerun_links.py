"""Build links to rerun a run or some of its scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalhub.lib.numbers import counted
from evalhub.web.template_filters import urlencode
from runs.models import Run

LONGEST = 2_000
"""Maximum characters of a query string: servers refuse lines of 4,000."""
PARTS = {"fail": ("failed scenario", ""), "error": ("scenario", " with errors")}
"""Labels of scenarios by a trial's outcome."""


@dataclass(frozen=True)
class RerunLink:
    """Some scenarios of a run, to rerun."""

    label: str
    query: str


def rerun_query(run: Run, keys: Sequence[str] = ()) -> str:
    """Return the new run form's query string to rerun a run, or these scenarios of it.

    Empty for imported runs, which have no target, and where the query would be too long.
    """
    if run.target.is_imported or not run.target.accepted:
        return ""
    fields = {
        "suite": run.suite.slug,
        "targets": run.target.name,
        "models": run.model,
        "guidance": run.guidance_id or "",
        # Too long for an address: the form takes them from the run.
        "descriptions_of": run.pk if run.options.get("descriptions") else "",
    }
    named = [(name, value) for name, value in fields.items() if value] + [("only", key) for key in keys]
    query = "&".join([f"{name}={urlencode(value, '')}" for name, value in named])
    return query if len(query) <= LONGEST else ""


def partial_rerun_links(run: Run, outcomes: Mapping[str, Sequence[str]]) -> Iterator[RerunLink]:
    """Return links to rerun what went wrong, from the trials' outcomes by scenario."""
    for outcome, (before, after) in PARTS.items():
        keys = [key for key, each in outcomes.items() if outcome in each]
        query = rerun_query(run, keys) if keys else ""
        if query:
            yield RerunLink(f"Rerun {counted(len(keys), before)}{after}…", query)
