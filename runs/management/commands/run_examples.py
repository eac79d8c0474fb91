"""The examples, run for real through the workers and held against what they should come to."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from evalhub.teams.access import default_project, local_owner
from evalhub.teams.models import Project
from runs import launching
from runs.models import Launch, Run
from runs.models.run import RunState, Trigger
from runs.options import RunOptions
from runs.planning import Request, request_runs
from runs.reports.console import summary
from runs.reports.document import run_document
from scenarios.bundles import read_path
from scenarios.commands import FAILED, EvalhubCommand, Result
from scenarios.formats.parsed import FixtureFile
from scenarios.imports import import_files
from scenarios.models import Guidance, SuiteVersion
from scenarios.storing import keep_guidance

EXAMPLES = Path(settings.BASE_DIR) / "scenarios" / "examples"
TARGET = "scripted-agent"
Expected = dict[str, dict[str, dict[str, str]]]
"""Suite, guidance, scenario: pass or fail."""


class Command(EvalhubCommand):
    help = "Run the example suites with each of their guidance versions, and compare with expected.yaml."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--now", action="store_true", help="run in this process, without workers")
        parser.add_argument("--again", action="store_true", help="run also what was run before")

    def work(self, options: dict[str, Any]) -> Result:
        expected: Expected = yaml.safe_load((EXAMPLES / "expected.yaml").read_text(encoding="utf-8"))
        project, owner = default_project(), local_owner()
        launching.take_targets_file(project, EXAMPLES / "targets.yaml", by=owner)
        runs: list[Run] = []
        for name, by_guidance in expected.items():
            version, guidance = load_example(project, EXAMPLES / name, list(by_guidance), by=owner)
            found = [] if options["again"] else earlier_runs(version, guidance)
            runs += found or self._run(project, version, guidance, by=owner, now=options["now"])
        documents = [run_document(run.pk) for run in runs]
        differences = [line for document in documents for line in differing(document, expected)]
        text = [summary(document, colour=self.stdout.isatty()) for document in documents]
        text += differences or ["Every example came out as expected."]
        return Result(
            "\n".join(text), {"runs": documents, "differences": differences}, FAILED if differences else 0
        )

    def _run(
        self, project: Project, version: SuiteVersion, guidance: list[Guidance], *, by: Any, now: bool
    ) -> list[Run]:
        request = Request([version], targets=[TARGET], guidance=guidance, options=RunOptions(trials=2))
        launch = request_runs(project, request, by=by, trigger=Trigger.CLI, wake=not now)
        if now:
            launching.carry_here(launch)
        else:
            launching.wait_for(launch)
        return _runs_of(launch)


def _runs_of(launch: Launch) -> list[Run]:
    return list(launch.runs.order_by("pk"))


def load_example(
    project: Project, folder: Path, names: list[str], *, by: Any
) -> tuple[SuiteVersion, list[Guidance]]:
    """Store an example suite; return its version and its guidance versions under these names.

    The first name is the guidance in its fixture, each other a file `guidance/<name>/AGENTS.md`.
    """
    (imported,) = import_files(read_path(folder), project=project, by=by)
    if imported.guidance is None:
        raise ValueError(f"{folder}: the fixture has no guidance file.")
    imported.guidance.name = names[0]
    imported.guidance.save(update_fields=["name"])
    others = [
        keep_guidance(
            imported.suite,
            (FixtureFile("AGENTS.md", (folder / "guidance" / name / "AGENTS.md").read_bytes()),),
            by=by,
            name=name,
        )[0]
        for name in names[1:]
    ]
    return imported.version, [imported.guidance, *others]


def earlier_runs(version: SuiteVersion, guidance: list[Guidance]) -> list[Run]:
    """Return the last finished run of each guidance version; empty unless there is one for each."""
    found = [
        Run.objects.filter(
            suite_version=version, guidance=each, target__name=TARGET, state=RunState.FINISHED
        ).first()
        for each in guidance
    ]
    return [run for run in found if run is not None] if all(found) else []


def differing(document: dict[str, Any], expected: Expected) -> list[str]:
    """Return a sentence for each trial that did not come out as expected."""
    run = document["run"]
    wanted = expected[run["suite"]][run["guidance_name"]]
    return [
        f"Not as expected: {run['suite']}, guidance {run['guidance_name']}, {trial['scenario']}: "
        f"{trial['outcome'] or trial['state']} instead of {wanted.get(trial['scenario'], 'nothing')}. {trial['error']}"
        for trial in document["trials"]
        if trial["outcome"] != wanted.get(trial["scenario"])
    ]
