"""`export_run`: write a run to a file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from runs.errors import NotWritable, RequestError
from runs.exchange.exports.exports import EXPORTS, export_run
from runs.exchange.exports.files import write_atomically
from runs.exchange.exports.run_archive import run_archive
from runs.models import Run
from runs.models.run import OPEN
from runs.results.find_run import find_run_or_refuse
from scenarios.commands import EvalhubCommand, Refused, Result, add_project_argument, chosen_project

ARCHIVE = "evalhub"
"""The format of archives."""


class Command(EvalhubCommand):
    help = (
        "Export a run as EvalSuiteResult, AgentV JSONL, JUnit, JSON or llm-tool-test's results folder (zip), to a "
        "file or standard output; or runs, or a suite's history, as an archive that import_results reads back exactly."
    )
    examples = (
        "12",
        "12 --format junit --output results.xml",
        "12 --format llm-tool-test --output results.zip",
        "12 13 --format evalhub --output runs.zip",
        "--suite git-basics --format evalhub --output history.zip",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, nargs="*", metavar="RUN", help="number of the run")
        parser.add_argument("--format", choices=[*EXPORTS, ARCHIVE], default="json")
        parser.add_argument(
            "--suite", metavar="SLUG", help=f"with --format {ARCHIVE}: all closed runs of a suite"
        )
        add_project_argument(parser)
        parser.add_argument("--output", metavar="FILE", help="write to this file instead of standard output")

    def work(self, options: dict[str, Any]) -> Result:
        name, output = options["format"], options["output"]
        numbers = _numbers(options)
        if (name == ARCHIVE or EXPORTS[name].is_archive) and not output:
            raise Refused("This format is an archive. Name its file with --output.", id="export/needs-file")
        try:
            content = run_archive(numbers) if name == ARCHIVE else export_run(numbers[0], name)
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error
        shown = (
            {"run": numbers[0], "format": name} if len(numbers) == 1 else {"runs": numbers, "format": name}
        )
        if not output:
            text = content.decode()
            return Result(text.rstrip("\n"), {**shown, "text": text})
        path = Path(output)
        try:
            write_atomically(path, content)
        except NotWritable as error:
            raise Refused(str(error), id=error.id) from error
        return Result(f"Wrote {path}.", {**shown, "file": str(path)})


def _numbers(options: dict[str, Any]) -> list[int]:
    """Return the numbers of the runs to export. Raises `Refused`."""
    numbers: list[int] = options["id"]
    if options["format"] != ARCHIVE and (options["suite"] or len(numbers) > 1):
        raise Refused(f"Only --format {ARCHIVE} takes several runs. Name one run.")
    if bool(options["suite"]) is bool(numbers):
        raise Refused(f"Name runs, or a suite with --suite and --format {ARCHIVE}.")
    if options["suite"]:
        project = chosen_project(options["project"])
        runs = Run.objects.filter(project=project, suite__slug=options["suite"]).exclude(state__in=OPEN)
        numbers = list(runs.order_by("pk").values_list("pk", flat=True))
        if not numbers:
            raise Refused(
                f"{project.name} has no closed run of a suite '{options['suite']}'.", id="run/unknown"
            )
    for number in numbers:
        find_run_or_refuse(number)
    return numbers
