"""`prove_suite`: prove a stored suite's newest version."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.execution.proving.requests import prove_here
from runs.reports.proofs import proof_lines, seals_json
from runs.warehouse.seals import seals_of_proof
from scenarios.commands import (
    FAILED,
    EvalhubCommand,
    Refused,
    Result,
    acting_user,
    add_project_argument,
    chosen_project,
)
from scenarios.models import SuiteVersion


class Command(EvalhubCommand):
    help = (
        "Prove a suite's newest version without a model: an agent that does nothing must fail each scenario, "
        "and its reference solution (solutions/<key>.sh) must pass. Exit 1 if one does not."
    )
    examples = ("my-suite",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("suite", metavar="SUITE", help="slug of the suite")
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        version = _newest(chosen_project(options["project"]), options["suite"])
        try:
            proof = prove_here(version, by=acting_user())
        except RequestError as error:
            raise Refused(str(error), id="proof/failed") from error
        seals = seals_of_proof(proof)
        document = {"suite": options["suite"], "version": version.number, "scenarios": seals_json(seals)}
        text = "\n".join([f"{version}", *proof_lines(seals)])
        return Result(text, document, FAILED if any(each.is_failure for each in seals) else 0)


def _newest(project: Project, slug: str) -> SuiteVersion:
    related = ("suite__project", "guidance")
    found = SuiteVersion.objects.filter(suite__project=project, suite__slug=slug).select_related(*related)
    if (version := found.first()) is not None:
        return version
    names = ", ".join(project.suites.values_list("slug", flat=True)) or "none yet"
    raise Refused(f"Unknown suite '{slug}' in {project.slug}. Suites: {names}.", id="suite/unknown")
