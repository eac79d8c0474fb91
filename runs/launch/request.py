"""Turn a request into queued trials, for pages, REST and the command line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.lib.numbers import format_count
from evalhub.teams import audit
from evalhub.teams.models import Priority, Project
from runs.compare.baselines import pinned_of
from runs.db import statements
from runs.errors import NoJudge, NothingToRun, RequestError
from runs.launch.lift import keep_arms, lift_benchmark, link_arms, plan_retests
from runs.launch.selection import (
    ChosenScenario,
    ProjectReader,
    UnjudgedTrials,
    check_judge,
    check_sides,
    check_strict,
    check_turns,
    find_target,
    find_unjudged,
    scenarios_of,
    select_scenarios,
    with_looks,
    with_recommended_judge,
)
from runs.models import Launch, Run, Target, Trial
from runs.models.run import Preset, Trigger
from runs.models.run_options import RunOptions, Selection
from runs.results.spending import month_spent_sentence
from runs.workers import claims, wakeups
from runs.workers.labels import refuse_missing_labels
from runs.workers.worker_registry import WorkerJudge, find_own_judge, judges_of_workers
from scenarios.adopted_guidance import last_guidance
from scenarios.models import Guidance, SuiteVersion

MOST_MORE = 100
"""The most further trials of a scenario at once."""


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
    labels: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the runs: `tool_version`, `branch`, `commit` and `tags`."""
    priority: Priority = Priority.NORMAL
    strict: bool = False
    """Refuse stored eval files that `--strict` would refuse."""
    benchmarks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of a lift: what the benchmark.json beside a suite's skill says, by the suite's slug (`lift_benchmark`)."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan."""

    run: Run
    """Not stored yet, unless it is one that gets further trials."""
    scenarios: tuple[ChosenScenario, ...]
    trials: int
    """Trials of each scenario."""

    @property
    def trial_count(self) -> int:
        """Scenarios times trials."""
        return len(self.scenarios) * self.trials

    @property
    def release_problem(self) -> str:
        """Say that the suite's release rule can't be measured; empty if it can or there is none."""
        suite = self.run.suite
        if suite.release_k is None or suite.release_k <= self.trials:
            return ""
        return (
            f"{suite.name}: the release rule is pass^{suite.release_k}, which {format_count(self.trials, 'trial')} of each "
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
                Run(
                    project=project,
                    suite_version=version,
                    suite=version.suite,
                    target=targets[pk],
                    model=model,
                    guidance=side,
                    is_experiment=request.options.experiment,
                    options=request.options.model_dump(mode="json"),
                    warnings=[*filter(None, [request.options.baseline_note])],
                    concurrency=request.options.concurrency or targets[pk].workers or 1,
                    max_usd=request.options.max_usd,
                    **request.labels,
                ),
                tuple(scenarios),
                request.options.trials,
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
        (each.run.target, {scenario.key: scenario.deciders for scenario in each.scenarios}, each.trials)
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
        refuse_missing_labels(each.run.target for each in planned)
    for each in planned:
        each.run.is_experiment = _is_experiment(each.run, request)
        if request.options.lift:
            each.run.options["benchmark"] = lift_benchmark(each.run.suite, request.benchmarks)
    options = request.options
    compares = len(request.guidance) > 1
    preset = Preset.LIFT if options.lift else Preset.GUIDANCE if compares else Preset.PLAIN
    launch = launch_of(request, planned[0].run, by=by, trigger=trigger, preset=preset)
    if options.until_decided:
        launch.stop = {"first": options.trials, "most": options.max_trials}
    store_launch(launch, planned, wake=wake)
    if compares:
        runs = [each.run for each in planned]
        link_arms(runs, until_decided=options.until_decided)
        if options.retest and not options.lift:
            plan_retests(runs)
    return launch


def launch_of(request: Request, first: Run, **columns: Any) -> Launch:
    """Return the launch of a request, not stored yet, described with its first run."""
    kept = {"seed", "snapshot", "registry", "baseline_file", "baseline_note"}
    return Launch(
        project=first.project,
        priority=request.priority,
        request={
            "targets": list(request.targets),
            "models": list(request.models),
            **({"profile": request.profile} if request.profile else {}),
            "tool_version": first.tool_version,
            "selection": request.selection.model_dump(mode="json"),
            "options": {name: value for name, value in first.options.items() if name not in kept},
        },
        **columns,
    )


@transaction.atomic
def store_launch(launch: Launch, planned: Sequence[PlannedRun], *, wake: bool = True) -> None:
    """Store a launch with its planned runs and their queued trials.

    Lanes take the runs of a launch in turn. Raises `RequestError` if the project's budget of the month is spent, and
    `NoJudge` if nothing could judge the launch.
    """
    if spent := month_spent_sentence(launch.project):
        raise RequestError(f"{spent} An admin can raise it in the project's settings.")
    options = RunOptions.model_validate(planned[0].run.options)
    workers = judges_of_workers if wake else find_own_judge
    unjudged = find_unjudged_trials(launch.project, planned, options, workers)
    if unjudged and unjudged.refusal:
        raise NoJudge(unjudged.refusal)
    launch.save()
    for each in planned:
        _store_run(launch, each)
    keys = [each.run.pk for each in planned]
    named = f"run {keys[0]}" if len(keys) == 1 else f"{len(keys)} runs, {keys[0]} to {keys[-1]}"
    audit.append_event(launch.project, launch.by, "run.request", named, launch=launch.pk, runs=keys)
    if wake:
        wakeups.after_commit_prepare(keys)
    else:
        claims.hold_launches(Launch.objects.filter(pk=launch.pk))


def _is_experiment(run: Run, request: Request) -> bool:
    """Return whether a run is an experiment: by request, as an arm of several, or because its guidance isn't adopted.

    Adopted is the guidance of the pinned baseline or of the suite's last upload.
    """
    if run.is_experiment or not request.guidance:
        return run.is_experiment
    if [each.suite_id for each in request.guidance].count(run.suite_id) > 1:
        return True
    pinned = pinned_of(run.suite_id, run.target_id, run.branch)
    adopted = {pinned.run.guidance_id if pinned else None, getattr(last_guidance(run.suite), "pk", None)}
    return run.guidance_id not in adopted | {None}


def _store_run(launch: Launch, planned: PlannedRun) -> None:
    """Store a planned run of a launch with its queued trials, and the project's seed manifest as the default."""
    run = planned.run
    run.launch, run.by, run.trigger = launch, launch.by, launch.trigger
    run.trials = run.open = planned.trial_count
    if run.options["seed"] is None and run.suite_version.config.get("seed") is None:
        run.options["seed"] = launch.project.seed_manifest
    run.save()
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


def plan_more_trials(
    project: Project, runs: Sequence[Run], keys: Collection[str], trials: int
) -> list[PlannedRun]:
    """Return what each run would run again, with its suite version, target, model and guidance.

    Raises `RequestError` if one of them can't run or lacks a scenario.
    """
    if not keys:
        raise NothingToRun("Select at least one scenario that both runs have.")
    return [_plan_run(project, run, keys, trials) for run in runs]


def _plan_run(project: Project, run: Run, keys: Collection[str], trials: int) -> PlannedRun:
    version = run.suite_version
    try:
        find_target(project, run.target.name)
    except RequestError as error:
        raise RequestError(f"Run {run.pk} can't get more trials. {error}") from error
    check_judge(project, RunOptions.model_validate(run.options))
    scenarios = select_scenarios(scenarios_of(version), Selection(only=tuple(keys)), version.suite.name)
    return PlannedRun(run, scenarios, trials)
