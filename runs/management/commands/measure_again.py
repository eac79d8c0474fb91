"""`measure_again`: add measures that stored runs lack."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.lib.numbers import counted
from runs.engine.stored_trials.measuring_again import measure_again, measure_exposure
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = (
        "Add the measures of this release, false done and exposure to guidance, to runs of earlier releases."
    )
    examples = ("", "--project tools")

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"]) if options["project"] else None
        done, exposed = measure_again(project), measure_exposure(project)
        lines = [
            f"Measured {counted(done, 'run')} again, and exposure to guidance in {counted(exposed.trials, 'trial')}."
        ]
        lines += [f"Run {run} is skipped: {reason}" for run, reason in exposed.skipped.items()]
        document = {"measured": done, "exposed": exposed.trials, "skipped": list(exposed.skipped)}
        return Result("\n".join(lines), document)
