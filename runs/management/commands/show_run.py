"""`show_run`: print one stored run."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from runs.exchange.exports.console import MOST_TRIALS, print_digest, terminal_of
from runs.exchange.exports.document import run_digest, run_document
from runs.results.find_run import find_run_or_refuse
from scenarios.commands import FAILED, EvalhubCommand, Result


class Command(EvalhubCommand):
    help = "Print a run with its trials."
    examples = (
        "12",
        "12 --json",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="RUN", help="number of the run")

    def work(self, options: dict[str, Any]) -> Result:
        run = find_run_or_refuse(options["id"])
        if options["json"]:
            document, text = run_document(run.pk), ""
        else:
            document = run_digest(run.pk, most=MOST_TRIALS)
            text = print_digest(document, terminal_of(self.stdout), details=True)
        return Result(text, document, FAILED if document["run"]["outcome"] in ("fail", "error") else 0)
