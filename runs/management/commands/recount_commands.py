"""`recount_commands`: count the commands of stored trials again by the current rules."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.web.numbers import counted
from evaluators.interaction import RULES_VERSION
from runs.execution.recounting import recount
from runs.management.commands.recompute import commands_lines
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = (
        "Count the commands of stored trials again by the rules of this release, from raw output or events. "
        "Outcomes stay as recorded."
    )
    examples = ("", "--project tools")

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"]) if options["project"] else None
        done = recount(project, self._progress)
        document = {
            "rules": RULES_VERSION,
            "runs": done.runs,
            "trials": done.trials,
            "kept": done.kept,
            "compared": done.compared,
        }
        return Result("\n".join(commands_lines(done)), document)

    def _progress(self, done: int, total: int) -> None:
        if done % 10 == 0 or done == total:
            self.stderr.write(f"Counting commands again: {done:,} of {counted(total, 'run')}.")
