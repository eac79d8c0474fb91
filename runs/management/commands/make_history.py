"""A made-up history, for benchmarks and for looking at pages with much on them."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.teams.models import Membership, Project
from evalhub.teams.roles import Role
from runs.demo_data.storing import make_runs, make_stage
from scenarios.commands import EvalhubCommand, Refused, Result, acting_user

MARK = "Made up"
"""Every project with made-up results begins so, and no other project gets any."""


class Command(EvalhubCommand):
    help = "Fill a project of its own with made-up runs. Nothing in them was measured: never cite them."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--runs", type=int, default=100, metavar="N")
        parser.add_argument("--trials", type=int, default=100, metavar="M", help="trials of each run")
        parser.add_argument("--project", default="made-up", help="slug of the project (default: made-up)")
        parser.add_argument("--seed", type=int, default=1, help="the same number gives the same history")

    def work(self, options: dict[str, Any]) -> Result:
        runs, trials = options["runs"], options["trials"]
        if runs < 1 or trials < 1:
            raise Refused("Give --runs and --trials a number of 1 or more.")
        began = time.monotonic()
        by = acting_user()
        project = made_up_project(options["project"], by=by)
        stage = make_stage(project, seed=options["seed"], by=by)
        make_runs(
            stage,
            runs=runs,
            trials=trials,
            seed=options["seed"],
            by=by,
            now=timezone.now(),
            told=lambda done: self.stderr.write(f"{done} of {runs} runs"),
        )
        seconds = time.monotonic() - began
        text = f"{project.name} has {runs} more runs of {trials} trials, made up in {seconds:.0f} s."
        return Result(text, {"project": project.slug, "runs": runs, "trials": trials, "seconds": seconds})


def made_up_project(slug: str, *, by: User | None) -> Project:
    """Return the project for made-up results. Raises `Refused` for one that may have real ones."""
    project, _ = Project.objects.get_or_create(slug=slug, defaults={"name": f"{MARK}: {slug}"[:120]})
    if not project.name.startswith(MARK):
        raise Refused(
            f"The project '{slug}' is not made up, and invented results do not belong beside real ones. "
            "Give --project another name.",
            id="history/real-project",
        )
    if by is not None:
        Membership.objects.get_or_create(project=project, user=by, defaults={"role": Role.ADMIN})
    return project
