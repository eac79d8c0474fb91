"""`measure_again`: add measures that stored runs lack."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.web.numbers import counted
from runs.warehouse.measure_again import measure_again
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = "Add the measures of this release, such as false done, to runs of earlier releases."
    examples = ("", "--project tools")

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        done = measure_again(chosen_project(options["project"]) if options["project"] else None)
        return Result(f"Measured {counted(done, 'run')} again.", {"measured": done})
