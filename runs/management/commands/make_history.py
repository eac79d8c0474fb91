"""`make_history`: generate demo data, for benchmarks and to try pages with a lot on them."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.teams.models import Membership, Project
from evalhub.teams.roles import Role
from runs.exchange.demo_data.second_process import ProcessLost
from runs.exchange.demo_data.storing import make_runs, make_stage
from scenarios.commands import EvalhubCommand, Refused, Result, acting_user

MARK = "Demo data"
"""Names of projects with demo data begin with it; no other project gets any."""

_MARKS = (MARK, "Made up")
"""With the mark of release 0.1.0, whose projects may get more."""


class Command(EvalhubCommand):
    help = "Fill a separate project with generated runs. Nothing in them was measured: never cite them."
    examples = ("--runs 100 --trials 20",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--runs", type=int, default=100, metavar="N")
        parser.add_argument("--trials", type=int, default=100, metavar="M", help="trials per run")
        parser.add_argument("--project", default="demo-data", help="slug of the project (default: demo-data)")
        parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same history")

    def work(self, options: dict[str, Any]) -> Result:
        runs, trials = options["runs"], options["trials"]
        if runs < 1 or trials < 1:
            raise Refused("Give --runs and --trials a number of 1 or more.")
        began = time.monotonic()
        by = acting_user()
        project = demo_project(options["project"], by=by)
        try:
            make_runs(
                make_stage(project, by=by),
                runs=runs,
                trials=trials,
                seed=options["seed"],
                by=by,
                now=timezone.now(),
                progress=lambda done: self.stderr.write(f"{done} of {runs} runs"),
            )
        except ProcessLost as error:
            sentence = f"{error} The runs stored so far remain. Try again with fewer --trials."
            raise Refused(sentence, id="history/process-lost") from error
        seconds = time.monotonic() - began
        text = f"Generated {runs} runs with {trials} trials each in {project.name} in {seconds:.0f} s."
        return Result(text, {"project": project.slug, "runs": runs, "trials": trials, "seconds": seconds})


def demo_project(slug: str, *, by: User | None) -> Project:
    """Return the project for demo data. Raises `Refused` if it may have real results."""
    project, _ = Project.objects.get_or_create(slug=slug, defaults={"name": f"{MARK}: {slug}"[:120]})
    if not project.name.startswith(_MARKS):
        raise Refused(
            f"The project '{slug}' may have real results; demo data isn't mixed with them. "
            "Choose another --project.",
            id="history/real-project",
        )
    if by is not None:
        Membership.objects.get_or_create(project=project, user=by, defaults={"role": Role.ADMIN})
    return project
