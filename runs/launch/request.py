"""Turns a request into queued trials, for pages, REST and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.lib.numbers import counted
from evalhub.teams import audit
from evalhub.teams.models import Priority, Project
from runs.compare.baselines import pinned_of
from runs.db import statements
from runs.errors import NoJudge, NothingToRun, RequestError
from runs.launch.arms import link_arms, plan_retests
from runs.launch.judge_choice import JudgedTrials, UnjudgedTrials, find_unjudged, with_recommended_judge
from runs.launch.lift import keep_arms, lift_benchmark
from runs.launch.selection import (
    ChosenScenario,
    ProjectReader,
    check_judge,
    check_sides,
    check_strict,
    check_turns,
    select_scenarios,
    with_looks,
)
from runs.models import Launch, Run, Target, Trial
from runs.models.run import Preset, Trigger
from runs.models.run_options import RunOptions, Selection
from runs.results.spending import month_spent_sentence
from runs.workers import holds, wakeups
from runs.workers.labels import refuse_missing_labels
from runs.workers.worker_registry import WorkerJudge, find_own_judge, judges_of_workers
from scenarios.adopted_guidance import last_guidance
from scenarios.models import Guidance, Suite, SuiteVersion


@dataclass(frozen=True)
class Request:
    """The runs to start: every suite version on every target, with every model and guidance."""

    suite_versions: Sequence[SuiteVersion]
    targets: Sequence[str] = ()
    """Names; empty means those of the scenarios (`tool_matrix`, `execution.target`), else the only target."""
    models: Sequence[str] = ()
    profile: str = ""
    """A profile of the suites' settings, in place of targets and models."""
    guidance: Sequence[Guidance] = ()
    """Empty means that of the suite's last upload."""
    selection: Selection = field(default_factory=Selection)
    options: RunOptions = field(default_factory=RunOptions)
    tool_version: str = ""
    branch: str = ""
    commit: str = ""
    tags: Sequence[str] = ()
    priority: Priority = Priority.NORMAL
    strict: bool = False
    """Refuse stored eval files that `--strict` would refuse."""
    benchmarks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of a lift: what the benchmark.json beside a suite's skill says, by the suite's slug (`lift_benchmark`)."""
    """Key of the run that these are further trials of."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan."""

    suite_version: SuiteVersion
    target: Target
    model: str
    guidance: Guidance | None
    scenarios: tuple[ChosenScenario, ...]
    trials: int
    """Trials of each scenario."""
    concurrency: int = 1
    """Parallel trials."""

    @property
    def trial_count(self) -> int:
        """Scenarios times trials."""
        return len(self.scenarios) * self.trials

    @property
    def release_problem(self) -> str:
        """Say that the suite's release rule can't be measured; empty if it can or there is none."""
        suite = self.suite_version.suite
        if suite.release_k is None or suite.release_k <= self.trials:
            return ""
        return (
            f"{suite.name}: the release rule is pass^{suite.release_k}, which {counted(self.trials, 'trial')} of each "
            f"scenario can't measure. Run {suite.release_k} or more."
        )


def plan(project: Project, request: Request, reader: ProjectReader | None = None) -> tuple[PlannedRun, ...]:
    """Return the runs of the request without storing them. Raises `RequestError`.

    Pass `reader` to reuse what the caller has read.
    """
    check_judge(project, request.options)
    if request.profile and (request.targets or request.models):
        raise RequestError(
            "A profile names its targets and models itself. Leave out the targets and models, or the profile."
        )
    request = replace(request, options=with_looks(request.options))
    check_sides(request.options, request.guidance)
    planned: list[PlannedRun] = []
    reader = reader or ProjectReader(project)
    for version in request.suite_versions:
        _check_version(project, version, strict=request.strict)
        arms: dict[tuple[int, str], list[ChosenScenario]] = {}
        targets: dict[int, Target] = {}
        names, models = request.targets, request.models
        if request.profile:
            names, models = reader.profile(version, request.profile)
        for scenario in select_scenarios(reader.scenarios(version), request.selection, version.suite.name):
            for target, model in reader.arms(scenario, names, models):
                check_turns(scenario, target)
                targets[target.pk] = target
                arms.setdefault((target.pk, model), []).append(scenario)
        guidance: Sequence[Guidance | None] = request.guidance or (reader.guidance(version.suite),)
        sides = [side for side in guidance if side is None or side.suite_id == version.suite_id]
        planned += [
            PlannedRun(
                version,
                targets[pk],
                model,
                side,
                tuple(scenarios),
                request.options.trials,
                request.options.concurrency or targets[pk].workers or 1,
            )
            for (pk, model), scenarios in arms.items()
            for side in sides
        ]
    if not planned:
        raise NothingToRun(
            "Nothing to run: a tool_matrix is empty, or the guidance belongs to another suite."
        )
    return tuple(planned)


def find_unjudged_trials(
    project: Project,
    planned: Sequence[PlannedRun],
    options: RunOptions,
    workers: Callable[[], Sequence[WorkerJudge]],
) -> UnjudgedTrials | None:
    """Return the trials of a plan that ask for a judge which nothing names; None if there are none.

    `workers` returns those that may execute them.
    """
    judged = [
        JudgedTrials(
            each.target, {scenario.key: scenario.deciders for scenario in each.scenarios}, each.trials
        )
        for each in planned
    ]
    return find_unjudged(project, judged, options, workers)


def _check_version(project: Project, version: SuiteVersion, *, strict: bool) -> None:
    if version.suite.project_id != project.pk:
        raise RequestError(f"{version.suite.name} belongs to another project.")
    if version.suite.has_sessions:
        raise RequestError(
            f"{version.suite.name} holds people's sessions, so it can't run. Choose another suite."
        )
    if strict:
        check_strict(version)


@transaction.atomic
def request_runs(
    project: Project, request: Request, *, by: User | None, trigger: Trigger, wake: bool = True
) -> Launch:
    """Store the runs of a request with their queued trials. Raises `RequestError`.

    Wakes workers unless the caller executes the runs, which then needs the labels of their targets.
    """
    request = replace(request, options=with_looks(with_recommended_judge(project, request.options)))
    if request.options.lift:
        request = replace(request, guidance=keep_arms(request.guidance, by=by))
    planned = plan(project, request)
    if not wake:
        refuse_missing_labels(each.target for each in planned)
    asked = [(each, _with_benchmark(request, each.suite_version.suite)) for each in planned]
    compares = len(request.guidance) > 1
    preset = Preset.LIFT if request.options.lift else Preset.GUIDANCE if compares else Preset.PLAIN
    launch = store_launch(project, asked, by=by, trigger=trigger, wake=wake, preset=preset)
    if compares:
        runs = list(launch.runs.order_by("pk"))
        link_arms(runs, until_decided=request.options.until_decided)
        if request.options.retest and not request.options.lift:
            plan_retests(runs)
    return launch


def _with_benchmark(request: Request, suite: Suite) -> Request:
    """Return the request with what the suite's benchmark.json says, if it is one for a lift. Two queries for a lift."""
    if not request.options.lift:
        return request
    benchmark = lift_benchmark(suite, request.benchmarks)
    return replace(request, options=request.options.model_copy(update={"benchmark": benchmark}))


@transaction.atomic
def store_launch(
    project: Project,
    planned: Sequence[tuple[PlannedRun, Request]],
    *,
    by: User | None,
    trigger: Trigger,
    wake: bool = True,
    preset: Preset = Preset.PLAIN,
    about: Run | None = None,
) -> Launch:
    """Store a launch of planned runs, each with the request it is from; the first one describes the launch.

    Lanes take the runs of a launch in turn. Raises `RequestError` if the project's budget of the month is spent, and
    `NoJudge` if nothing could judge the launch.
    """
    if spent := month_spent_sentence(project):
        raise RequestError(f"{spent} An admin can raise it in the project's settings.")
    request = planned[0][1]
    workers = judges_of_workers if wake else find_own_judge
    unjudged = find_unjudged_trials(project, [each for each, _ in planned], request.options, workers)
    if unjudged and unjudged.refusal:
        raise NoJudge(unjudged.refusal)
    launch = Launch.objects.create(
        project=project,
        by=by,
        trigger=trigger,
        priority=request.priority,
        preset=preset,
        about=about,
        stop={"first": request.options.trials, "most": request.options.max_trials}
        if request.options.until_decided
        else {},
        request={
            "targets": list(request.targets),
            "models": list(request.models),
            **({"profile": request.profile} if request.profile else {}),
            "tool_version": request.tool_version,
            "selection": request.selection.model_dump(mode="json"),
            "options": request.options.model_dump(
                mode="json", exclude={"seed", "snapshot", "registry", "baseline_file", "baseline_note"}
            ),
        },
    )
    runs = [store_run(launch, each, own) for each, own in planned]
    keys = [run.pk for run in runs]
    audit.append_event(project, by, "run.request", _name_runs(keys), launch=launch.pk, runs=keys)
    if wake:
        wakeups.after_commit_prepare([run.pk for run in runs])
    else:
        holds.hold_launches(Launch.objects.filter(pk=launch.pk))
    return launch


def _name_runs(runs: Sequence[int]) -> str:
    """Return the runs by number, as in the audit log."""
    return f"run {runs[0]}" if len(runs) == 1 else f"{len(runs)} runs, {runs[0]} to {runs[-1]}"


def _options(planned: PlannedRun, request: Request) -> dict[str, Any]:
    """Return the options stored with a run, with the project's seed manifest as the default."""
    options: dict[str, Any] = request.options.model_dump(mode="json")
    version = planned.suite_version
    if options["seed"] is None and version.config.get("seed") is None:
        options["seed"] = version.suite.project.seed_manifest
    return options


def _is_experiment(planned: PlannedRun, request: Request) -> bool:
    """Return whether a run is an experiment: by request, as an arm of several, or because its guidance isn't adopted.

    Adopted is the guidance of the pinned baseline or of the suite's last upload.
    """
    if not request.guidance:
        return request.options.experiment
    suite = planned.suite_version.suite
    if request.options.experiment or [each.suite_id for each in request.guidance].count(suite.pk) > 1:
        return True
    pinned = pinned_of(suite.pk, planned.target.pk, request.branch)
    adopted = {pinned.run.guidance_id if pinned else None, getattr(last_guidance(suite), "pk", None)} - {None}
    return planned.guidance is not None and planned.guidance.pk not in adopted


def store_run(launch: Launch, planned: PlannedRun, request: Request) -> Run:
    """Store a planned run of a launch with its queued trials. Requires a transaction."""
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
        is_experiment=_is_experiment(planned, request),
        options=_options(planned, request),
        warnings=[*filter(None, [request.options.baseline_note])],
        concurrency=planned.concurrency,
        trials=trials,
        open=trials,
        max_usd=request.options.max_usd,
        branch=request.branch,
        commit=request.commit,
        tags=list(request.tags),
        by=launch.by,
        trigger=launch.trigger,
    )
    width = len(planned.scenarios)
    # Not `bulk_create`: for a thousand trials it takes as long as starting the command.
    queued = {**statements.blank(Trial), "run": run.pk}
    rows = [
        {
            **queued,
            "scenario_version": scenario.version_id,
            "scenario": scenario.scenario_id,
            "index": index,
            "position": index * width + place,
        }
        for index in range(planned.trials)
        for place, scenario in enumerate(planned.scenarios)
    ]
    statements.insert(Trial, rows)
    return run
