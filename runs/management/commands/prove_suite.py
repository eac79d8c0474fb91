"""`prove_suite`: prove a stored suite's newest version."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from typing import Any

from evalhub.lib.numbers import format_money
from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.results.validations import validations_of_proof
from runs.suites.proofs_api import prove_here
from runs.suites.prove import proof_lines, validations_json
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
        "Prove a suite's newest version without a model: an agent that does nothing must fail "
        "each scenario, and its reference solution (solutions/<key>.sh) must pass. Exit 1 if a scenario is not proved."
    )
    examples = ("my-suite",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("suite", metavar="SUITE", help="slug of the suite")
        add_project_argument(parser)
        parser.add_argument(
            "--max-usd",
            type=float,
            metavar="X",
            help="let judges cost up to X dollars: where nothing else decides, they must fail an empty and a nonsense"
            " answer",
        )

    def work(self, options: dict[str, Any]) -> Result:
        version = _newest(chosen_project(options["project"]), options["suite"])
        try:
            return _proof(version, options)
        except RequestError as error:
            raise Refused(str(error), id="proof/failed") from error


def _proof(version: SuiteVersion, options: dict[str, Any]) -> Result:
    most = options["max_usd"]
    if most is not None and not 0 < most < math.inf:
        raise RequestError(f"--max-usd is {most:g}. Give more than 0 dollars.")
    proof = prove_here(version, by=acting_user(), max_usd=most)
    validations = validations_of_proof(proof)
    document = {
        "suite": options["suite"],
        "version": version.number,
        "cost_usd": proof.cost_usd,
        "scenarios": validations_json(validations),
    }
    lines = [f"{version}", *proof_lines(validations)]
    if proof.max_usd is not None:
        lines.append(f"Judges cost {format_money(proof.cost_usd)} of {format_money(proof.max_usd)}.")
    return Result(
        "\n".join(lines),
        document,
        0 if all(each.is_proved and not each.is_failure for each in validations) else FAILED,
    )


def _newest(project: Project, slug: str) -> SuiteVersion:
    related = ("suite__project", "guidance")
    versions = SuiteVersion.objects.filter(suite__project=project, suite__slug=slug).select_related(*related)
    if (version := versions.first()) is not None:
        return version
    names = ", ".join(project.suites.values_list("slug", flat=True)) or "none yet"
    raise Refused(f"Unknown suite '{slug}' in {project.slug}. Suites: {names}.", id="suite/unknown")
