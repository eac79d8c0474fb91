"""What can be downloaded of a run's page: its tables as CSV, and its documents."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, StreamingHttpResponse
from django.urls import reverse

from evalhub.web.csv_export import chosen_table
from runs.exchange.exports.exports import EXPORTS
from runs.models import Run
from runs.results.run_page.diagnosis import diagnosis_table, shown_findings
from runs.results.run_page.scenarios import ScenarioRow, choose_rows, scenario_table
from runs.results.run_page.subcommands import subcommand_table, subcommands
from runs.results.run_page.variance import variance_table
from runs.results.run_trials import RunTrials

TABLES = {
    "scenarios": "Scenarios",
    "subcommands": "Subcommands",
    "diagnosis": "Diagnosis",
    "variance": "Variance",
}
"""Titles of a run's tables by their names in the address."""


def documents_of(run: Run) -> dict[str, str]:
    """Return the titles of a run's documents by their addresses."""
    return {
        reverse("run-download", args=[run.project.slug, run.pk, name]): export.title
        for name, export in EXPORTS.items()
    }


def requested_table(
    request: HttpRequest, run: Run, read: RunTrials, rows: Sequence[ScenarioRow]
) -> StreamingHttpResponse | None:
    """Return the table that the address asks for as CSV, the scenarios of its chip if it names none; else None."""
    shown = choose_rows(list(rows), request.GET.get("show", ""))
    tables = {
        "scenarios": lambda: scenario_table(run, shown),
        "subcommands": lambda: subcommand_table(run, subcommands(run, read)),
        "diagnosis": lambda: diagnosis_table(run, shown_findings(run, read.digest)),
        "variance": lambda: variance_table(run, read.digest.variance),
    }
    return chosen_table(request, tables)
