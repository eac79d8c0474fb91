"""`set_baseline`: pin a run as baseline."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from runs.compare.baselines import set_baseline
from runs.errors import RequestError
from runs.results.find_run import find_run_or_refuse
from scenarios.commands import EvalhubCommand, Refused, Result, acting_user


class Command(EvalhubCommand):
    help = "Pin a finished run as the baseline of its suite and target."
    examples = (
        "12",
        "12 --branch main",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="RUN", help="number of the run")
        parser.add_argument("--branch", default="", help="only for runs of this branch")

    def work(self, options: dict[str, Any]) -> Result:
        run = find_run_or_refuse(options["id"], "suite", "target", "project")
        try:
            baseline = set_baseline(run, by=acting_user(), branch=options["branch"])
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error
        where = f" on branch {baseline.branch}" if baseline.branch else ""
        text = f"Run {run.pk} is now the baseline of {run.suite.slug} on {run.target.name}{where}."
        document = {
            "run": run.pk,
            "suite": run.suite.slug,
            "target": run.target.name,
            "branch": baseline.branch or None,
        }
        return Result(text, document)
