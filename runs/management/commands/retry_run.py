"""`retry_run`: run the errors of a closed run again, in the same run."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.lib.numbers import format_count
from runs.engine import run_here
from runs.engine.retrying import RetryKind, retry_trials
from runs.errors import RequestError
from runs.exchange.exports.console import MOST_TRIALS, print_digest, terminal_of
from runs.exchange.exports.document import run_digest, run_document
from runs.results.find_run import find_run_or_refuse
from scenarios.commands import FAILED, EvalhubCommand, Refused, Result, acting_user


class Command(EvalhubCommand):
    help = "Run the trials of a closed run that had errors again, in the same run; earlier attempts are kept."
    examples = ("12", "12 --wait", "12 --resume --now")

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="RUN", help="number of the run")
        parser.add_argument("--resume", action="store_true", help="run the cancelled trials instead")
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--now", action="store_true", help="run in this process, without workers")
        mode.add_argument("--wait", action="store_true", help="run through workers and wait")

    def work(self, options: dict[str, Any]) -> Result:
        run = find_run_or_refuse(options["id"], "target", "launch")
        again = RetryKind.RESUME if options["resume"] else RetryKind.RETRY
        try:
            trials = retry_trials(run, again, by=acting_user(), wake=not options["now"])
            if options["now"]:
                run_here.run_here(run.launch)
            elif options["wait"]:
                run_here.wait_for(
                    run.launch, limit_seconds=run_here.WAIT_LIMIT_SECONDS, notify=self.stderr.write
                )
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error
        if not options["now"] and not options["wait"]:
            text = f"run {run.pk}: {format_count(trials, 'trial')} queued."
            return Result(text, {"run": run.pk, "trials": trials})
        digest = run_digest(run.pk, most=MOST_TRIALS)
        document = run_document(run.pk) if options["json"] else digest
        failed = digest["run"]["outcome"] in ("fail", "error")
        return Result(print_digest(digest, terminal_of(self.stdout)), document, FAILED if failed else 0)
