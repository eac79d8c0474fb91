"""From a request to queued trials. Pages, REST and the command line all end here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from django.db import transaction

from evalhub.teams.models import Project, note
from runs import wakeups
from runs.claims import make_slots
from runs.errors import NothingToRun, RequestError, UnknownTarget
from runs.models import Launch, Run, Target, Trial
from runs.models.run import Trigger
from runs.options import RunOptions, Selection
from scenarios.models import Guidance, ScenarioVersion, Suite, SuiteVersion
from scenarios.spec import ScenarioSpec


@dataclass(frozen=True)
class Request:
    """What somebody wants to run: every suite version on every target, with every model and every guidance."""

    suite_versions: Sequence[SuiteVersion]
    targets: Sequence[str] = ()
    """Names; empty takes what the scenarios name (`tool_matrix`, `execution.target`), else the only target."""
    models: Sequence[str] = ()
    guidance: Sequence[Guidance] = ()
    """Empty takes that of the suite's last upload."""
    selection: Selection = field(default_factory=Selection)
    options: RunOptions = field(default_factory=RunOptions)
    tool_version: str = ""
    branch: str = ""
    commit: str = ""
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan: what it would execute."""

    suite_version: SuiteVersion
    target: Target
    model: str
    guidance: Guidance | None
    scenarios: tuple[tuple[ScenarioVersion, ScenarioSpec], ...]
    trials: int

    @property
    def trial_count(self) -> int:
        """Scenarios times trials."""
        return len(self.scenarios) * self.trials


def find_target(project: Project, name: str) -> Target:
    """Return the project's accepted target. Raises `UnknownTarget` with what there is instead."""
    target = Target.objects.filter(project=project, name=name).first()
    if target is not None and target.accepted:
        return target
    if target is not None and target.provider == "imported":
        raise UnknownTarget(
            f"The target '{name}' is known from imported results only. Name one that can run."
        )
    if target is not None:
        raise UnknownTarget(
            f"The target '{name}' is a proposal. An admin has to accept it on the targets page first."
        )
    names = sorted(Target.objects.filter(project=project, accepted=True).values_list("name", flat=True))
    close = get_close_matches(name, names, n=1)
    if not names:
        raise UnknownTarget(
            f"There is no target called '{name}', and the project has none. Give a targets file."
        )
    hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(names)}."
    raise UnknownTarget(f"There is no target called '{name}'. {hint}")


def _only_target(project: Project) -> Target:
    targets = list(Target.objects.filter(project=project, accepted=True)[:2])
    if len(targets) == 1:
        return targets[0]
    if not targets:
        raise UnknownTarget(
            "The project has no target yet. Give a targets file, or make one on the targets page."
        )
    raise UnknownTarget("Several targets could run this. Name one, for example with --target.")


def _chosen(version: SuiteVersion, selection: Selection) -> tuple[tuple[ScenarioVersion, ScenarioSpec], ...]:
    entries = version.entries.select_related("scenario_version__scenario")
    pairs = [(entry.scenario_version, entry.scenario_version.spec) for entry in entries]
    unknown = set(selection.only) - {spec.key for _, spec in pairs}
    if unknown:
        keys = ", ".join(sorted(spec.key for _, spec in pairs))
        raise NothingToRun(f"{version.suite.name} has no scenario '{min(unknown)}'. It has: {keys}.")
    chosen = tuple(
        (scenario_version, spec)
        for scenario_version, spec in pairs
        if selection.takes(key=spec.key, tags=spec.tags, tier=spec.tier)
    )
    if not chosen:
        raise NothingToRun(f"No scenario of {version.suite.name} is left by the chosen tags, tier and keys.")
    return chosen


def _arms(project: Project, request: Request, spec: ScenarioSpec) -> list[tuple[Target, str]]:
    """Return target and model of each run that a scenario takes part in; options win over its matrix."""
    if request.targets:
        return [
            (find_target(project, name), model)
            for name in request.targets
            for model in request.models or ("",)
        ]
    if spec.matrix is not None:
        return [
            (find_target(project, entry.target), model)
            for entry in spec.matrix
            for model in (request.models or entry.models or ("",))
        ]
    target = find_target(project, spec.target) if spec.target else _only_target(project)
    return [(target, model) for model in request.models or ("",)]


def last_guidance(suite: Suite) -> Guidance | None:
    """Return the guidance of the suite's last upload, which a run takes that asks for none."""
    upload = suite.uploads.select_related("guidance").first()
    return upload.guidance if upload else None


def plan(project: Project, request: Request) -> tuple[PlannedRun, ...]:
    """Return the runs that the request would make, with nothing stored. Raises `RequestError`."""
    planned: list[PlannedRun] = []
    for version in request.suite_versions:
        if version.suite.project_id != project.pk:
            raise RequestError(f"{version.suite.name} belongs to another project.")
        arms: dict[tuple[int, str], list[tuple[ScenarioVersion, ScenarioSpec]]] = {}
        targets: dict[int, Target] = {}
        for scenario_version, spec in _chosen(version, request.selection):
            for target, model in _arms(project, request, spec):
                targets[target.pk] = target
                arms.setdefault((target.pk, model), []).append((scenario_version, spec))
        guidance: Sequence[Guidance | None] = request.guidance or (last_guidance(version.suite),)
        own = [each for each in guidance if each is None or each.suite_id == version.suite_id]
        planned += [
            PlannedRun(version, targets[pk], model, each, tuple(scenarios), request.options.trials)
            for (pk, model), scenarios in arms.items()
            for each in own
        ]
    if not planned:
        raise NothingToRun(
            "Nothing is left to run: a tool_matrix is empty, or the guidance is of another suite."
        )
    return tuple(planned)


@transaction.atomic
def request_runs(
    project: Project, request: Request, *, by: Any, trigger: Trigger, wake: bool = True
) -> Launch:
    """Store the runs of a request with their queued trials. Raises `RequestError`.

    Workers are woken unless the caller carries the runs itself.
    """
    planned = plan(project, request)
    launch = Launch.objects.create(
        project=project,
        by=by,
        trigger=trigger,
        request={
            "targets": list(request.targets),
            "models": list(request.models),
            "selection": request.selection.model_dump(mode="json"),
            "options": request.options.model_dump(mode="json", exclude={"seed", "snapshot", "registry"}),
        },
    )
    runs = [_store(launch, each, request) for each in planned]
    note(project, by, "run.request", f"launch {launch.pk}", runs=[run.pk for run in runs])
    if wake:
        wakeups.after_commit_prepare([run.pk for run in runs])
    return launch


def _store(launch: Launch, planned: PlannedRun, request: Request) -> Run:
    trials = planned.trial_count
    run = Run.objects.create(
        project=launch.project,
        launch=launch,
        suite_version=planned.suite_version,
        suite=planned.suite_version.suite,
        target=planned.target,
        model=planned.model,
        guidance=planned.guidance,
        tool_version=request.tool_version,
        options=request.options.model_dump(mode="json"),
        concurrency=request.options.concurrency or planned.target.workers or 1,
        trials=trials,
        open=trials,
        branch=request.branch,
        commit=request.commit,
        tags=list(request.tags),
        by=launch.by,
        trigger=launch.trigger,
    )
    width = len(planned.scenarios)
    Trial.objects.bulk_create(
        [
            Trial(
                run=run,
                scenario_version=scenario_version,
                scenario_id=scenario_version.scenario_id,
                index=index,
                position=index * width + place,
            )
            for index in range(planned.trials)
            for place, (scenario_version, _) in enumerate(planned.scenarios)
        ],
        batch_size=500,
    )
    make_slots(run)
    return run
