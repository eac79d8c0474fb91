"""Compare stored runs with their baselines again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from runs.compare.comparison import compare_again
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = "Compute the verdicts of stored runs again, with new smallest effects."
    examples = ("--project tools",)

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"])
        compared = compare_again(project)
        return Result(f"{compared} runs compared again.", {"project": project.slug, "runs": compared})
