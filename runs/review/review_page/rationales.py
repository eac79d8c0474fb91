"""Read a criterion's reasons on a suite's runs, by tool and guidance version."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import TextField
from django.db.models.functions import Cast

from evalhub.teams.models import Project
from runs.compare.default_suite import choose_suite
from runs.models import JudgingRecord, Run
from runs.review.statement_groups import Read, StatementGroup, group_statements, read_content
from scenarios.models import Suite

MOST_RUNS = 50
MOST_JUDGINGS = 600
MOST_COLUMNS = 6
MOST_STATEMENTS = 40


@dataclass(frozen=True)
class RationaleFilters:
    """Judges' statements on the runs with one tool and guidance version."""

    tool: str
    guidance: str
    runs: int
    judged: int
    mean: float | None
    """Mean score of the chosen criterion; None without one."""
    groups: dict[str, list[StatementGroup]]
    """By heading: reasons of the criterion if the judge gave some, issues, highlights."""


@dataclass(frozen=True)
class Rationales:
    """Content of the page."""

    suites: list[Suite]
    suite: Suite | None
    criterion: str
    criteria: list[str]
    readings: list[RationaleFilters]


def rationales_of(project: Project, slug: str, criterion: str) -> Rationales:
    """Return the statements of a suite's recent runs by tool and guidance version, newest first. Four queries; two more without a chosen suite."""
    suites, suite = choose_suite(project, slug, prefers_judged=True)
    if suite is None:
        return Rationales(suites, None, criterion, [], [])
    columns: dict[tuple[str, str], list[int]] = {}
    runs = Run.objects.filter(suite=suite).select_related("guidance").defer("guidance__files")
    for run in runs.order_by("-pk")[:MOST_RUNS]:
        guidance = str(run.guidance) if run.guidance else "no guidance"
        columns.setdefault((run.tool_version or "unknown tool version", guidance), []).append(run.pk)
    newest = dict(list(columns.items())[:MOST_COLUMNS])
    judgings = _judgings([pk for keys in newest.values() for pk in keys])
    criteria = sorted(
        {name for readings in judgings.values() for _, _, content in readings for name in content.criteria}
    )
    chosen = criterion if criterion in criteria else ""
    readings = [_reading(*key, keys, judgings, chosen) for key, keys in newest.items()]
    return Rationales(suites, suite, chosen, criteria, readings)


def _judgings(runs: list[int]) -> dict[int, list[Read]]:
    """Return the newest counting judgings by run. One query."""
    rows = JudgingRecord.objects.filter(trial__run__in=runs, trial__round=0, counts=True).order_by("-pk")
    judgings: dict[int, list[Read]] = {}
    values = rows.values_list("trial__run", "pk", "trial", Cast("content", TextField()))
    for run, pk, trial, text in values[:MOST_JUDGINGS]:
        judgings.setdefault(run, []).append((pk, trial, read_content(text)))
    return judgings


def _reading(
    tool: str, guidance: str, runs: list[int], judgings: dict[int, list[Read]], criterion: str
) -> RationaleFilters:
    selected = [judging for run in runs for judging in judgings.get(run, ())]
    scores = [content.criteria[criterion] for _, _, content in selected if criterion in content.criteria]
    if criterion:
        selected = [judging for judging in selected if criterion in judging[2].criteria]
    groups = group_statements(selected, criterion)
    sides = {"Reasons": "criterion", "Issues": "negative", "Highlights": "positive"}
    by_heading = {name: [each for each in groups if each.polarity == side] for name, side in sides.items()}
    if not by_heading["Reasons"]:
        del by_heading["Reasons"]
    return RationaleFilters(
        tool,
        guidance,
        len(runs),
        len(selected),
        sum(scores) / len(scores) if scores else None,
        by_heading,
    )
