"""Describe what importing a file of results would store: as lines for the command line, as a document for REST."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from evalhub.lib.numbers import date_and_time, format_count, format_money
from runs.exchange.imports.preview_results import PreviewedRun, ResultsPreview


def preview_lines(preview: ResultsPreview) -> list[str]:
    """Return what a file holds, a paragraph a run, and how many runs are new."""
    lines = [f"{preview.file}: {describe_program(preview)}"]
    for run in preview.runs:
        lines += [
            f"  {run.suite} on {run.target}" + (f", {run.model}" if run.model else ""),
            *(f"    {name}: {text}" for name, text in preview_facts(run)),
            *(f"    ! {note}" for note in run.notes),
        ]
    return [*lines, f"{format_count(preview.new, 'run')} to import. {_known(preview)}Nothing was stored."]


def describe_program(preview: ResultsPreview) -> str:
    """Return the program that wrote a file, with its version if the file says it."""
    return f"{preview.program} {preview.version}".strip()


def _known(preview: ResultsPreview) -> str:
    if preview.imported:
        return f"Imported before as {_named(preview.imported)}. "
    known = [each.stored for each in preview.runs if each.stored]
    return f"Stored already: {_named(known)}. " if known else ""


def _named(numbers: Sequence[int]) -> str:
    return f"run{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def preview_facts(run: PreviewedRun) -> list[tuple[str, str]]:
    """Return names and values of a run, those that are known; outcomes and what is new always."""
    moments = dict.fromkeys(
        date_and_time(datetime.fromisoformat(at)) for at in (run.started, run.finished) if at
    )
    facts = [
        ("Trials", f"{run.trials:,} of {format_count(run.scenarios, 'scenario')}"),
        ("Outcomes", _outcomes(run)),
        ("Time", " to ".join(moments) or "not in the file"),
        ("Transcripts", f"{run.transcripts:,} of {run.trials:,} trials" if run.transcripts else ""),
        ("Tokens", "" if run.tokens_in is None else f"{run.tokens_in:,} in, {run.tokens_out:,} out"),
        ("Cost", format_money(run.cost_usd) if run.cost_usd is not None else ""),
        ("Suite", _suite(run)),
        ("New scenarios", _first_names(run.new_scenarios)),
        ("Target", "new" if run.is_new_target else "stored already"),
        ("Baseline", f"run {run.baseline}" if run.baseline else ""),
        ("Run", f"stored already as run {run.stored}; stays as it is" if run.stored else "new"),
    ]
    return [(name, text) for name, text in facts if text]


def _outcomes(run: PreviewedRun) -> str:
    more = [(run.cancelled, "cancelled"), (run.skipped, "skipped (not trials)")]
    return ", ".join(
        [
            f"{run.passed:,} passed",
            f"{run.failed:,} failed",
            format_count(run.errors, "error"),
            *(f"{n:,} {word}" for n, word in more if n),
        ]
    )


def _suite(run: PreviewedRun) -> str:
    if run.suite_version:
        return f"version {run.suite_version} is stored already"
    return "new" if run.is_new_suite else "stored already; a new version"


def _first_names(keys: tuple[str, ...]) -> str:
    if not keys:
        return "none"
    more = f" and {len(keys) - 10:,} more" if len(keys) > 10 else ""
    return f"{len(keys):,}: {', '.join(keys[:10])}{more}"


def preview_document(preview: ResultsPreview) -> dict[str, Any]:
    """Return a preview as JSON."""
    return {
        "program": preview.program,
        "version": preview.version,
        "imported": preview.imported,
        "new": preview.new,
        "runs": preview.runs,
    }
