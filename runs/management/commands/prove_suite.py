"""`prove_suite`: prove a stored suite's newest version."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from typing import Any

from evalhub.lib.numbers import counted, money
from evalhub.teams.models import Project
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.aa_pairs import aa_rates
from runs.engine.run_here import run_here
from runs.errors import RequestError
from runs.models import Run
from runs.models.run import Trigger
from runs.results.seals import seals_of_proof
from runs.suites.proof_requests import prove_here, request_aa_pair
from runs.suites.prove import proof_lines, seals_json
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

MOST_TRIALS = 1000


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
        parser.add_argument(
            "--aa",
            action="store_true",
            help="instead run the suite twice with nothing changed and print how much differs by chance",
        )
        parser.add_argument("--target", default="", help="with --aa: target (default: as for a run)")
        parser.add_argument(
            "--trials", type=int, default=3, help="with --aa: trials per scenario (default: %(default)s)"
        )

    def work(self, options: dict[str, Any]) -> Result:
        version = _newest(chosen_project(options["project"]), options["suite"])
        try:
            return _aa_pair(version, options) if options["aa"] else _proof(version, options)
        except RequestError as error:
            raise Refused(str(error), id="proof/failed") from error


def _proof(version: SuiteVersion, options: dict[str, Any]) -> Result:
    most = options["max_usd"]
    if most is not None and not 0 < most < math.inf:
        raise RequestError(f"--max-usd is {most:g}. Give more than 0 dollars.")
    proof = prove_here(version, by=acting_user(), max_usd=most)
    seals = seals_of_proof(proof)
    document = {
        "suite": options["suite"],
        "version": version.number,
        "cost_usd": proof.cost_usd,
        "scenarios": seals_json(seals),
    }
    lines = [f"{version}", *proof_lines(seals)]
    if proof.max_usd is not None:
        lines.append(f"Judges cost {money(proof.cost_usd)} of {money(proof.max_usd)}.")
    return Result(
        "\n".join(lines),
        document,
        0 if all(each.is_proved and not each.is_failure for each in seals) else FAILED,
    )


def _aa_pair(version: SuiteVersion, options: dict[str, Any]) -> Result:
    if not 1 <= options["trials"] <= MOST_TRIALS:
        raise RequestError(f"--trials is {options['trials']}. Give 1 to {MOST_TRIALS:,}.")
    pair = request_aa_pair(
        version,
        options["target"],
        trials=options["trials"],
        by=acting_user(),
        trigger=Trigger.CLI,
        wake=False,
    )
    for run in pair:
        run_here(run.launch)
    second = Run.objects.get(pk=pair[1].pk)
    if second.aa_scenarios is None:
        raise RequestError(
            f"Runs {pair[0].pk} and {second.pk} aren't an A/A pair: their fingerprints differ, one did not finish, "
            "or a third or more of its trials hit errors."
        )
    rates = aa_rates(second.suite_id, second.target_id)
    document = {
        "runs": [run.pk for run in pair],
        "verdict": second.verdict,
        "scenarios": second.aa_scenarios,
        "differing": second.aa_differing,
        "pairs": vars(rates),
    }
    label = ChangeVerdict(second.verdict).label
    text = (
        f"Runs {pair[0].pk} and {second.pk}: {second.aa_differing} of "
        f"{counted(second.aa_scenarios, 'scenario outcome')} differ. {label}.\n{rates.sentence}"
    )
    return Result(text, document)


def _newest(project: Project, slug: str) -> SuiteVersion:
    related = ("suite__project", "guidance")
    versions = SuiteVersion.objects.filter(suite__project=project, suite__slug=slug).select_related(*related)
    if (version := versions.first()) is not None:
        return version
    names = ", ".join(project.suites.values_list("slug", flat=True)) or "none yet"
    raise Refused(f"Unknown suite '{slug}' in {project.slug}. Suites: {names}.", id="suite/unknown")
