"""The examples: suites that a newcomer runs first, and their expected outcomes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q

from evalhub.teams.models import Project
from evalhub.web import example_agent
from runs.engine import run_here
from runs.launch import inputs
from runs.launch.inputs import read_registry_file
from runs.launch.lift import LIFT_OPTIONS, NO_PREVIOUS, keep_arms, lift_arms
from runs.launch.request import Request, request_runs
from runs.models import Run
from runs.models.run import RunState, Trigger
from runs.models.run_options import RunOptions
from scenarios.bundles import read_path
from scenarios.formats.parsed import FixtureFile
from scenarios.imports import import_files
from scenarios.models import Guidance, SuiteVersion
from scenarios.storing import store_guidance
from scenarios.tool_descriptions import ToolDescriptions, read_descriptions

FOLDER = Path(settings.BASE_DIR) / "scenarios" / "examples"


@dataclass(frozen=True)
class Example:
    """One request: a suite, on targets, with each of its guidance versions."""

    suite: str
    targets_file: str
    targets: tuple[str, ...]
    guidance: tuple[str, ...] = ()
    """Names: the first for the document in the suite, each other for a file `guidance/<name>/AGENTS.md`."""
    tool_version: str = ""
    trials: int = 1
    registry: str = ""
    """Tool registry for staleness checks."""
    lift: bool = False
    """Run its skill and no skill in turn, with one look, which is enough for a verdict."""
    descriptions: str = ""
    """Descriptions in place of those of an MCP server."""


CITIES = "cities/tools.json"
EXAMPLES = (
    # Five trials are enough for a verdict on the two versions of guidance.
    Example("git-basics", "targets.yaml", ("scripted-agent",), ("poor", "good"), trials=5),
    Example("stock", "targets.yaml", ("scripted-agent",), ("poor", "good"), trials=3),
    # A skill with its evals.
    Example("stock-keeping", "targets.yaml", ("scripted-agent",), ("skill",), trials=3),
    Example("stock-keeping", "targets.yaml", ("scripted-agent",), ("skill",), trials=3, lift=True),
    Example("desk", "desk/targets.yaml", ("desk-clerk", "desk-guesser"), ("house",)),
    # Five trials of a case are enough to tell a regression from luck.
    Example(
        "cities", "cities/targets-v1.yaml", ("city-agent",), tool_version="1.0", trials=5, registry=CITIES
    ),
    Example(
        "cities", "cities/targets-v2.yaml", ("city-agent",), tool_version="2.0", trials=5, registry=CITIES
    ),
    # An MCP server, with its own descriptions and with better ones.
    Example("notes", "notes/targets.yaml", ("notes-agent",), tool_version="terse", trials=3),
    Example(
        *("notes", "notes/targets.yaml", ("notes-agent",)),
        tool_version="explained",
        trials=3,
        descriptions="notes/descriptions.yaml",
    ),
)


def run_example(example: Example, project: Project, *, by: User | None, now: bool, again: bool) -> list[Run]:
    """Run an example to its end and return its runs; reuse finished runs unless `again`."""
    inputs.import_targets_file(project, FOLDER / example.targets_file, by=by)
    version, guidance = _load(project, example, by=by)
    if example.lift:
        guidance = keep_arms(lift_arms([version], guidance, NO_PREVIOUS), by=by)
    earlier = [] if again else _earlier(example, version, guidance)
    if earlier:
        return earlier
    request = Request(
        [version],
        targets=example.targets,
        guidance=guidance,
        options=RunOptions(
            trials=example.trials,
            registry=read_registry_file(FOLDER / example.registry) if example.registry else None,
            descriptions=_descriptions(FOLDER / example.descriptions) if example.descriptions else None,
            **({**LIFT_OPTIONS, "lift": True, "max_trials": example.trials} if example.lift else {}),
        ),
        labels={"tool_version": example.tool_version},
    )
    launch = request_runs(project, request, by=by, trigger=Trigger.CLI, wake=not now)
    if now:
        run_here.run_here(launch)
    else:
        run_here.wait_for(launch)
    return list(launch.runs.order_by("pk"))


def _descriptions(path: Path) -> ToolDescriptions:
    return read_descriptions(path.read_bytes(), path.name)


def _load(project: Project, example: Example, *, by: User | None) -> tuple[SuiteVersion, list[Guidance]]:
    """Store the suite; return its version and its named guidance versions."""
    folder = FOLDER / example.suite
    (imported,) = import_files(read_path(folder), project=project, by=by)
    if not example.guidance or imported.guidance is None:
        return imported.version, []
    first, *others = example.guidance
    imported.guidance.name = first
    imported.guidance.save(update_fields=["name"])
    return imported.version, [
        imported.guidance,
        *(_store_guidance(imported.suite, folder, name, by) for name in others),
    ]


def _store_guidance(suite: Any, folder: Path, name: str, by: User | None) -> Guidance:
    content = (folder / "guidance" / name / "AGENTS.md").read_bytes()
    return store_guidance(suite, (FixtureFile("AGENTS.md", content),), by=by, name=name)[0]


def _earlier(example: Example, version: SuiteVersion, guidance: list[Guidance]) -> list[Run]:
    """Return the last finished run of each guidance and target; empty unless each has one."""
    finished = Run.objects.filter(suite_version=version, state=RunState.FINISHED)
    of_lift = Q(options__lift=True)
    finished = finished.filter(of_lift if example.lift else ~of_lift)
    if example.tool_version:
        finished = finished.filter(tool_version=example.tool_version)
    versions: list[Guidance | None] = [*guidance] or [None]
    runs = [
        finished.filter(guidance=guidance_version, target__name=target).first()
        for guidance_version in versions
        for target in example.targets
    ]
    return [run for run in runs if run is not None] if all(runs) else []


def expected_outcomes() -> dict[str, Any]:
    """Return the outcomes in expected.yaml, by suite, guidance and scenario."""
    outcomes: dict[str, Any] = yaml.safe_load((FOLDER / "expected.yaml").read_text(encoding="utf-8"))
    return outcomes


def find_unexpected(document: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return a sentence for each trial of a run document with an unexpected outcome, or an agent that tampered."""
    run = document["run"]
    guidance = run["guidance_name"] or "none"
    outcomes = expected.get(run["suite"], {}).get(guidance, {})
    tampered = [
        f"Unexpected warning: {run['suite']} on {run['target']}, {trial['scenario']}: {trial['warnings'][0]}"
        for trial in document["trials"]
        if run["tampered"] and trial["warnings"]
    ]
    return tampered + [
        f"Unexpected outcome: {run['suite']} on {run['target']}, guidance {guidance}, {trial['scenario']}: "
        f"{trial['outcome'] or trial['state']}. {trial['error']}".rstrip()
        for trial in document["trials"]
        if trial["outcome"] != _expected_outcome(outcomes.get(trial["scenario"]), run)
    ]


def _expected_outcome(entry: Any, run: dict[str, Any]) -> Any:
    """Return an entry's outcome for a run; an entry may depend on the target or the tool's version."""
    return entry.get(run["target"], entry.get(run["tool_version"])) if isinstance(entry, dict) else entry


@contextmanager
def http_agent() -> Iterator[None]:
    """Serve the HTTP example agent while the block runs, unless the environment names a running one."""
    if all(os.environ.get(name) for name in example_agent.VARIABLES):
        yield
        return
    port = example_agent.free_port()
    with subprocess.Popen(example_agent.agent_command(port)) as process:
        os.environ.update(example_agent.agent_addresses(port))
        try:
            example_agent.wait_until_open(port)
            yield
        finally:
            process.terminate()
