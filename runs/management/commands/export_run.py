"""`export_run`: write a run to a file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from runs.errors import NotWritable
from runs.models import Run
from runs.reports.exports import EXPORTS, exported
from runs.reports.files import write_atomically
from scenarios.commands import EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = (
        "Export a run as EvalSuiteResult, AgentV JSONL, JUnit, CTRF, JSON or llm-tool-test's results folder (zip), to a "
        "file or standard output."
    )
    examples = (
        "12",
        "12 --format junit --output results.xml",
        "12 --format llm-tool-test --output results.zip",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="RUN", help="number of the run")
        parser.add_argument("--format", choices=EXPORTS, default="json")
        parser.add_argument("--output", metavar="FILE", help="write to this file instead of standard output")

    def work(self, options: dict[str, Any]) -> Result:
        if not Run.objects.filter(pk=options["id"]).exists():
            raise Refused(f"There is no run {options['id']}. The runs page lists all runs.", id="run/unknown")
        if EXPORTS[options["format"]].is_archive and not options["output"]:
            raise Refused("This format is an archive. Name its file with --output.", id="export/needs-file")
        content = exported(options["id"], options["format"])
        if not options["output"]:
            text = content.decode()
            return Result(
                text.rstrip("\n"), {"run": options["id"], "format": options["format"], "text": text}
            )
        path = Path(options["output"])
        try:
            write_atomically(path, content)
        except NotWritable as error:
            raise Refused(str(error), id=error.id) from error
        return Result(
            f"Wrote {path}.", {"run": options["id"], "format": options["format"], "file": str(path)}
        )
