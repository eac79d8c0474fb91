"""Store results of other programs as closed runs, with rollups and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.models import Project
from evaluators.grading.assertions import calls_of_transcript
from evaluators.grading.costs import usage_parts
from evaluators.grading.evaluate import Criteria
from evaluators.patterns import pattern_budget
from evaluators.tool_use.attempts import find_attempts
from evaluators.tool_use.diagnosis import diagnose, error_messages, waste_scores
from evaluators.tool_use.interaction import Interaction, analyse, score_interaction
from runs.compare import comparison
from runs.compare.baselines import run_of_import
from runs.exchange.results_files.values import ExternalRun, ExternalTrial
from runs.models import Launch, Run, Target
from runs.models.run import RunState, Trigger, run_with_uuid
from runs.models.target import IMPORTED
from runs.models.trial import TrialState, command_row, json_of, scores_json
from runs.results.comparability import CONTENTS, contents_json, is_version
from runs.results.rollups import write_rollups
from runs.results.trial_rows import TrialParts, insert_trials
from scenarios.formats.parsed import ParsedSuite
from scenarios.imports import store_suite
from scenarios.models import Guidance, ScenarioVersion, Suite, SuiteVersion
from scenarios.spec import ScenarioSpec
from scenarios.storing import keep_scenarios


@transaction.atomic
def store_results(
    project: Project,
    parsed: Sequence[ExternalRun],
    file: str,
    sha256: str,
    *,
    by: User | None,
    version: SuiteVersion | None = None,
) -> tuple[Run, ...]:
    """Store results that were read; return their runs, the existing one of a run that is stored already.

    `version` is the suite's version that they are compared with as a baseline; by default it is found or made.
    """
    known = [stored_run(project, each.external_id) for each in parsed]
    if all(known):
        return tuple(run for run in known if run)
    launch = Launch.objects.create(project=project, by=by, trigger=Trigger.IMPORT, request={"file": file})
    runs = tuple(
        stored or _store(launch, external_run, sha256, version)
        for stored, external_run in zip(known, parsed, strict=True)
    )
    audit.append_event(project, by, "results.import", file, runs=[run.pk for run in runs])
    return runs


def stored_run(project: Project, run_id: str) -> Run | None:
    """Return the project's run with this UUID, else the newest one imported under this id; None without one."""
    run = run_with_uuid(run_id)
    if run and run.project_id == project.pk:
        return run
    imported = run_of_import(project.pk, run_id)
    return Run.objects.get(pk=imported) if imported else None


def target_name(target: str) -> str:
    """Return the name under which a target of results is stored."""
    return target[:120]


def keep_target(project: Project, target: str) -> Target:
    """Return the target of results, stored if it is new. Up to two queries."""
    stored, _ = Target.objects.get_or_create(
        project=project,
        name=target_name(target),
        defaults={"provider": IMPORTED, "definition": {"url": target}, "accepted": False},
    )
    return stored


def _store(launch: Launch, external: ExternalRun, sha256: str, chosen: SuiteVersion | None = None) -> Run:
    version, scenarios = (
        _chosen_version(chosen, external)
        if chosen
        else version_of_results(launch.project, external, launch.by)
    )
    run = _create_run(launch, external, version, sha256, by_id=chosen is not None)
    _store_trials(run, scenarios, external.trials)
    write_rollups(run, is_new=True)
    comparison.compare_with_baseline(run, is_new=True)
    return run


def _create_run(
    launch: Launch, external: ExternalRun, version: SuiteVersion, sha256: str, *, by_id: bool
) -> Run:
    now = timezone.now()
    outcomes = [trial.outcome for trial in external.trials]
    costs = [trial.cost_usd for trial in external.trials if trial.cost_usd is not None]
    tool_version = str(external.tool_version or external.staleness.get("tool_version") or "")[:200]
    guidance = _guidance(version.suite, external)
    under_test = {"tool_version": tool_version, "guidance": guidance.sha256 if guidance else ""}
    run = stored_run(launch.project, external.baseline)
    return Run.objects.create(
        project=launch.project,
        launch=launch,
        suite_version=version,
        suite=version.suite,
        target=keep_target(launch.project, external.target),
        state=RunState.CANCELLED if external.cancelled else RunState.FINISHED,
        outcome=_outcome(external),
        options={
            "import": {"sha256": sha256, "run_id": external.external_id},
            "baseline": str(run.pk) if run else "",
        },
        fingerprint={
            "target": external.target,
            "provider": IMPORTED,
            "staleness": external.staleness,
            **{name: value for name, value in under_test.items() if value},
            CONTENTS: contents_json(
                external.suite_hash,
                [(trial.key, trial.scenario_hash) for trial in external.trials],
                by_id=by_id,
            ),
        },
        guidance=guidance,
        warnings=external.all_warnings,
        tool_version=tool_version,
        model=external.model,
        cost_usd=sum(costs) if costs else None,
        tokens_in=sum(trial.usage.input for trial in external.trials if trial.usage),
        tokens_out=sum(trial.usage.output for trial in external.trials if trial.usage),
        trials=len(outcomes),
        passed=outcomes.count("pass"),
        failed=outcomes.count("fail"),
        errors=outcomes.count("error"),
        by=launch.by,
        trigger=Trigger.IMPORT,
        started=external.started or now,
        finished=_end_time(external, external.started or now),
    )


def _outcome(external: ExternalRun) -> str:
    """Return a run's outcome; trials that passed say nothing of those that were cancelled."""
    words = ("fail", "error") if external.cancelled else ("fail", "error", "pass")
    outcomes = {trial.outcome for trial in external.trials}
    return next((word for word in words if word in outcomes), "")


def _end_time(external: ExternalRun, started: datetime) -> datetime:
    """Return when the last trial ended, else the time that sequential trials would have ended."""
    finished = [trial.finished for trial in external.trials if trial.finished]
    if finished:
        return max(finished)
    try:
        return started + timedelta(seconds=max(0.0, sum(trial.seconds or 0.0 for trial in external.trials)))
    except (OverflowError, ValueError):
        # Times in files may be invalid, such as an impossible year.
        return started


def _guidance(suite: Suite, external: ExternalRun) -> Guidance | None:
    return suite.guidance.filter(sha256=external.guidance).first() if external.guidance else None


def _chosen_version(
    version: SuiteVersion, external: ExternalRun
) -> tuple[SuiteVersion, dict[str, ScenarioVersion]]:
    """Return a version and the scenarios of results by key; those that it lacks are stored without a content."""
    scenarios = _scenarios(version)
    lacking = [spec for spec in _specs(external) if spec.key not in scenarios]
    created = keep_scenarios(version.suite, lacking, {}, dict.fromkeys((spec.key for spec in lacking), ""))
    present = version.scenario_versions.values("scenario_id")
    version.suite.scenarios.filter(key__in=[spec.key for spec in lacking]).exclude(pk__in=present).update(
        retired=True
    )
    return version, scenarios | {spec.key: each for spec, each in zip(lacking, created, strict=True)}


def _specs(external: ExternalRun) -> list[ScenarioSpec]:
    """Return the cases of results as scenarios, without what results don't say."""
    specs: dict[str, ScenarioSpec] = {}
    for trial in external.trials:
        named = {"description": trial.description, "prompt": trial.prompt}
        specs.setdefault(trial.key, ScenarioSpec(key=trial.key, criteria=Criteria(tool=trial.tool), **named))
    return list(specs.values())


def version_of_results(
    project: Project, external: ExternalRun, by: User | None
) -> tuple[SuiteVersion, dict[str, ScenarioVersion]]:
    """Return the version that the results name, else the newest one if it has all cases, else one made of them."""
    if match := find_version_of_results(project, external):
        return match
    created = store_suite(suite_of_results(external), project, by=by).version
    return created, _scenarios(created)


def find_version_of_results(
    project: Project, external: ExternalRun
) -> tuple[SuiteVersion, dict[str, ScenarioVersion]] | None:
    """Return the stored version that the results name, else the newest one if it has all cases, else None."""
    suite = Suite.objects.filter(project=project, name=external.suite).first()
    suite = suite or Suite.objects.filter(project=project, slug=external.suite).first()
    versions = list(suite.versions.all()) if suite else []
    named = [each for each in versions if is_version(external.suite_hash, each)]
    for version in [*named, *versions[:1]]:
        scenarios = _scenarios(version)
        if all(trial.key in scenarios for trial in external.trials):
            return version, scenarios
    return None


def suite_of_results(external: ExternalRun) -> ParsedSuite:
    """Return a suite made of the cases of results."""
    return ParsedSuite(external.suite, external.format, tuple(_specs(external)), settings=external.config)


def _scenarios(version: SuiteVersion) -> dict[str, ScenarioVersion]:
    rows = version.scenario_versions.select_related("scenario").defer("content")
    return {each.scenario.key: each for each in rows}


def _store_trials(
    run: Run, versions: Mapping[str, ScenarioVersion], trials: tuple[ExternalTrial, ...]
) -> None:
    seen: dict[str, int] = {}
    rows = []
    with pattern_budget():
        used = [_measure_tool_use(trial, versions[trial.key]) for trial in trials]
    for position, (trial, interaction) in enumerate(zip(trials, used, strict=True)):
        index = seen.get(trial.key, 0)
        seen[trial.key] = index + 1
        row = _row(run, versions[trial.key], trial, interaction, index, position)
        commands = interaction.commands if interaction else ()
        parts = TrialParts(
            transcript=trial.transcript,
            answer=trial.answer,
            error=trial.error,
            commands=[command_row(0, each) for each in commands],
        )
        rows.append((row, parts))
    insert_trials(run, rows)


def _measure_tool_use(trial: ExternalTrial, version: ScenarioVersion) -> Interaction | None:
    """Return layer 1 of a trial with a transcript, by the tool of the results, else the stored scenario's."""
    if trial.transcript is None:
        return None
    return analyse(
        trial.transcript, trial.tool or version.spec.criteria.tool, completed=bool(trial.completed)
    )


def _score_tool_use(trial: ExternalTrial, interaction: Interaction | None) -> list[dict[str, Any]]:
    """Return layer 1's scores; whether the agent completed only if the results say so."""
    if interaction is None or trial.transcript is None or trial.error:
        return []
    wasted = waste_scores(trial.transcript, interaction.commands, passed=trial.outcome == "pass")
    all_scores = (*score_interaction(interaction), *wasted)
    return scores_json(
        tuple(each for each in all_scores if each.name != "completed" or trial.completed is not None)
    )


def _detail(trial: ExternalTrial, interaction: Interaction | None) -> dict[str, Any]:
    warned = {"warnings": list(trial.warnings)} if trial.warnings else {}
    if trial.transcript is None or interaction is None:
        return {"tools_called": list(trial.tools_called), **warned}
    messages = error_messages(trial.transcript, interaction)
    return {
        "tools_called": [call.name for call in calls_of_transcript(trial.transcript)],
        "interaction": interaction.as_json(),
        "attempts": json_of(find_attempts(trial.transcript, interaction.commands)),
        "diagnosis": json_of(diagnose(interaction, messages=messages, failed=trial.outcome != "pass")),
        "messages": json_of(messages),
        "notes": list(trial.transcript.problems),
        **warned,
    }


def _row(
    run: Run,
    version: ScenarioVersion,
    trial: ExternalTrial,
    interaction: Interaction | None,
    index: int,
    position: int,
) -> dict[str, Any]:
    return {
        **{name: value for name, value in trial.facts.items() if name != "usage"},
        "outcome": trial.outcome,
        "error": trial.error,
        "completed": trial.completed,
        "scenario_version": version.pk,
        "scenario": version.scenario_id,
        "index": index,
        "position": position,
        "state": TrialState.FINISHED,
        "error_kind": IMPORTED if trial.error else "",
        "composite": trial.composite,
        "tokens_in": trial.usage.input if trial.usage else None,
        "tokens_out": trial.usage.output if trial.usage else None,
        "scores": [*_score_tool_use(trial, interaction), *trial.scores],
        "detail": {
            **_detail(trial, interaction),
            **({"usage": usage_parts(trial.usage)} if trial.usage else {}),
        },
        "started": run.started,
        "finished": trial.finished or run.finished,
    }
