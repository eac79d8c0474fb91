"""`recount_commands`: count the commands of stored trials again by the current rules."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.web.numbers import counted
from evaluators.interaction import RULES_VERSION
from runs.execution.recounting import Recounted, recount
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
        return Result(_text(done), document)

    def _progress(self, done: int, total: int) -> None:
        if done % 10 == 0 or done == total:
            self.stderr.write(f"Counting commands again: {done} of {counted(total, 'run')}.")


def _text(done: Recounted) -> str:
    if not done.behind:
        return f"Every run is counted by rules {RULES_VERSION}."
    lines = [
        f"Counted {counted(done.trials, 'trial')} of {counted(done.runs, 'run')} again by rules {RULES_VERSION}, "
        f"and compared {counted(done.compared, 'run')} again."
    ]
    if done.kept:
        lines.append(
            f"{counted(done.kept, 'trial')} had no stored events to count from. Their figures stay, and are not "
            "compared with new ones."
        )
    return "\n".join(lines)
