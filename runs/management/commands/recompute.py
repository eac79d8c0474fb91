"""`recompute`: compute the figures of stored trials again by the rules of this release."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from evalhub.lib.numbers import counted
from evaluators.grading.costs import COST_RULES
from evaluators.tool_use.interaction import RULES_VERSION
from runs.engine.stored_trials.recomputing import Recomputed
from runs.engine.stored_trials.recounting import recount
from runs.engine.stored_trials.repricing import reprice
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = (
        "Compute the figures of stored trials again by the rules of this release: commands and costs, from raw output "
        "or events. Outcomes stay as recorded."
    )
    examples = ("", "--project tools")

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"]) if options["project"] else None
        commands = recount(project, self._progress("Counting commands"))
        costs = reprice(project, self._progress("Computing costs"))
        document = {
            "commands": {"rules": RULES_VERSION, **_json(commands)},
            "costs": {"rules": COST_RULES, **_json(costs)},
        }
        return Result("\n".join((*_commands_lines(commands), *_costs_lines(costs))), document)

    def _progress(self, doing: str) -> Callable[[int, int], None]:
        def report(done: int, total: int) -> None:
            if done % 10 == 0 or done == total:
                self.stderr.write(f"{doing} again: {done:,} of {counted(total, 'run')}.")

        return report


def _json(done: Recomputed) -> dict[str, int]:
    return {"runs": done.runs, "trials": done.trials, "kept": done.kept, "compared": done.compared}


def _commands_lines(done: Recomputed) -> list[str]:
    """Return what was counted again, in sentences."""
    if not done.behind:
        return [f"Every run is counted by rules {RULES_VERSION}."]
    lines = [
        f"Counted {counted(done.trials, 'trial')} of {counted(done.runs, 'run')} again by rules {RULES_VERSION}, "
        f"and compared {counted(done.compared, 'run')} again."
    ]
    if done.kept:
        lines.append(
            f"{counted(done.kept, 'trial')} had no stored events to count from. Their figures stay, and are not "
            "compared with new ones."
        )
    return lines


def _costs_lines(done: Recomputed) -> list[str]:
    if not done.behind:
        return [f"Every cost is by rules {COST_RULES}."]
    lines = [
        f"Computed the costs of {counted(done.trials, 'trial')} of {counted(done.runs, 'run')} again by rules "
        f"{COST_RULES}, and compared {counted(done.compared, 'run')} again."
    ]
    if done.kept:
        lines.append(
            f"{counted(done.kept, 'trial')} had no stored output to compute from. Their costs stay, marked 'cached "
            "tokens charged in full', and are not compared with new ones."
        )
    return lines
