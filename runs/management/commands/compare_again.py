"""Compare stored runs with their baselines again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from runs.compare.comparison import compare_again, compare_old_runs
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = "Compute the verdicts of stored runs again: after an upgrade, or with new smallest effects."
    examples = ("--project tools",)

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)
        parser.add_argument(
            "--old", action="store_true", help="only runs that an older release compared, in all projects"
        )

    def work(self, options: dict[str, Any]) -> Result:
        if options["old"]:
            compared = compare_old_runs()
            return Result(f"{compared} runs compared again.", {"project": None, "runs": compared})
        project = chosen_project(options["project"])
        compared = compare_again(project)
        return Result(f"{compared} runs compared again.", {"project": project.slug, "runs": compared})
