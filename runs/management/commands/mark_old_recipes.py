"""`mark_old_recipes`: find runs whose recipe reported failed commands as successes, and mark them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.lib.numbers import counted
from runs.engine.stored_trials.old_recipes import Marked, mark_old_recipes
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = (
        "Find the runs made with recipes of older releases, which reported failed commands as successes, and mark them: "
        "their tool use is not available and not compared. Outcomes stay as recorded."
    )
    examples = ("", "--project tools")

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"]) if options["project"] else None
        done = mark_old_recipes(project, self._progress)
        document = {"runs": done.runs, "trials": done.trials, "compared": done.compared}
        return Result(_sentence(done), document)

    def _progress(self, done: int, total: int) -> None:
        if done % 100 == 0 or done == total:
            self.stderr.write(f"Looking for old recipes: {done:,} of {counted(total, 'run')}.")


def _sentence(done: Marked) -> str:
    if not done.runs:
        return "No run was made with an old recipe."
    names = ", ".join(map(str, done.runs))
    return (
        f"Marked {counted(done.trials, 'trial')} of {counted(len(done.runs), 'run')} ({names}), and compared "
        f"{counted(done.compared, 'run')} again. Copy the recipes of this release and run them again."
    )
