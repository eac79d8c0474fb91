"""`import_results`: import other programs' results as runs."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from runs.errors import RequestError
from runs.models import Run
from runs.warehouse.import_results import import_results
from runs.warehouse.results_files.folders import packed
from runs.warehouse.results_files.llm_tool_test import READ
from scenarios.commands import (
    EvalhubCommand,
    Refused,
    Result,
    acting_user,
    add_project_argument,
    chosen_project,
    read_bytes,
)


class Command(EvalhubCommand):
    help = (
        "Import other programs' results as runs: EvalSuiteResult files, AgentV's JSON lines, promptfoo's JSON, "
        "llm-tool-test's results.jsonl, run folders and results folders (also as zip)."
    )
    examples = (
        "results/*.json",
        "results.jsonl --project tools",
        "llm-tool-test-results",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="file or folder of results")
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project, by = chosen_project(options["project"]), acting_user()
        runs: list[Run] = []
        for path in options["paths"]:
            try:
                runs += import_results(project, _content(path), Path(path).resolve().name, by=by)
            except RequestError as error:
                raise Refused(str(error), id=error.id) from error
        lines = [
            f"run {run.pk}: {run.suite.slug} on {run.target.name}, {run.passed}/{run.trials} passed"
            for run in runs
        ]
        return Result("\n".join(lines), {"runs": [run.pk for run in runs]})


def _content(path: str) -> bytes:
    """Return a file's content, or a folder's results as an archive. Raises `Refused`."""
    if not Path(path).is_dir():
        return read_bytes(path, "The results")
    content = packed(Path(path))
    if not content:
        raise Refused(
            f"{path}: no {', '.join(READ)} in this folder. Name llm-tool-test's results folder.",
            id="command/unreadable",
        )
    return content
