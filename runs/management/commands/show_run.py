"""`show_run`: print one stored run."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from runs.exchange.exports.console import MOST_TRIALS
from runs.exchange.exports.document import run_digest, run_document
from runs.exchange.exports.terminal import print_digest, terminal_of
from runs.models import Run
from scenarios.commands import FAILED, EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = "Print a run with its trials."
    examples = (
        "12",
        "12 --json",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="RUN", help="number of the run")

    def work(self, options: dict[str, Any]) -> Result:
        if not Run.objects.filter(pk=options["id"]).exists():
            raise Refused(f"There is no run {options['id']}. The runs page lists all runs.", id="run/unknown")
        if options["json"]:
            document, text = run_document(options["id"]), ""
        else:
            document = run_digest(options["id"], most=MOST_TRIALS)
            text = print_digest(document, terminal_of(self.stdout), details=True)
        return Result(text, document, FAILED if document["run"]["outcome"] in ("fail", "error") else 0)
