"""Objects of the warehouse with sensible contents; every function takes what a test cares about as a named change."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from evalhub.teams.models import Membership, Project
from runs.compare.comparison import compare_with_baseline
from runs.models import Launch, Run, SubcommandMeasure, Target, Trial
from runs.results.rollups import write_rollups
from scenarios.models import Guidance, Scenario, ScenarioVersion, Suite, SuiteEntry, SuiteVersion, Upload

_numbers = itertools.count(1)


def make_project(slug: str = "tools", **changes: Any) -> Project:
    return Project.objects.create(slug=slug, **{"name": slug.title(), **changes})


def make_member(project: Project, role: str = "admin", name: str = "", password: str | None = None) -> Any:
    """Return a user in a project, who cannot sign in without a password."""
    user = get_user_model().objects.create_user(name or f"{role}-{next(_numbers)}", password=password)
    Membership.objects.create(project=project, user=user, role=role)
    return user


def spec_content(key: str, **changes: Any) -> dict[str, Any]:
    """Return a scenario as its version keeps it."""
    gates = [{"type": "file_exists", "path": "out.txt"}]
    return {"key": key, "prompt": f"Do {key}.", "criteria": {"gates": gates}, **changes}


def make_suite(
    project: Project,
    keys: Sequence[str] = ("create", "export"),
    *,
    name: str = "",
    lints: Sequence[Any] = (),
    **content: Any,
) -> SuiteVersion:
    """Return the first version of a new suite with these scenarios."""
    name = name or f"Basics {next(_numbers)}"
    suite = Suite.objects.create(
        project=project, slug=name.lower().replace(" ", "-"), name=name, format="llm_tool_test"
    )
    version = SuiteVersion.objects.create(
        suite=suite, number=1, sha256=f"{next(_numbers):064x}", lints=list(lints)
    )
    scenarios = Scenario.objects.bulk_create(Scenario(suite=suite, key=key) for key in keys)
    versions = ScenarioVersion.objects.bulk_create(
        ScenarioVersion(
            scenario=scenario,
            sha256=f"{next(_numbers):064x}",
            content=spec_content(scenario.key, **content),
            task_hash="t",
            gates_hash="g",
        )
        for scenario in scenarios
    )
    SuiteEntry.objects.bulk_create(
        SuiteEntry(suite_version=version, scenario_version=each, position=position)
        for position, each in enumerate(versions)
    )
    Upload.objects.create(suite=suite, suite_version=version)
    return version


def make_version(suite: Suite, **contents: dict[str, Any]) -> SuiteVersion:
    """Return a further version of a suite, with these scenarios; a prompt among what changed makes it another task."""
    number = suite.versions.count() + 1
    version = SuiteVersion.objects.create(suite=suite, number=number, sha256=f"{next(_numbers):064x}")
    for position, (key, content) in enumerate(contents.items()):
        scenario, _ = suite.scenarios.get_or_create(key=key)
        made = ScenarioVersion.objects.create(
            scenario=scenario,
            sha256=f"{next(_numbers):064x}",
            content=spec_content(key, **content),
            task_hash="t2" if "prompt" in content else "t",
            gates_hash="g",
        )
        SuiteEntry.objects.create(suite_version=version, scenario_version=made, position=position)
    return version


def make_guidance(suite: Suite, name: str = "AGENTS.md v1") -> Guidance:
    number = next(_numbers)
    return Guidance.objects.create(suite=suite, number=number, sha256=f"{number:064x}", name=name)


def make_target(project: Project, name: str = "local", **changes: Any) -> Target:
    given = {"provider": "mock", "definition": {"name": name, "provider": "mock"}, **changes}
    return Target.objects.create(project=project, name=name, **given)


def make_run(version: SuiteVersion, **changes: Any) -> Run:
    """Return a finished run without trials; counters follow the trials that `make_trial` adds."""
    project = version.suite.project
    target = (
        changes.pop("target", None) or Target.objects.filter(project=project).first() or make_target(project)
    )
    now = timezone.now()
    standard = {"state": "finished", "trigger": "web", "started": now, "finished": now}
    if changes.get("state", "finished") != "finished":
        standard["finished"] = None
    launch = changes.pop("launch", None) or Launch.objects.create(project=project, trigger="web")
    return Run.objects.create(
        project=project,
        launch=launch,
        suite_version=version,
        suite=version.suite,
        target=target,
        **{**standard, **changes},
    )


def score(
    layer: str, name: str, value: float | None, passed: bool | None = None, **more: Any
) -> dict[str, Any]:
    return {"layer": layer, "name": name, "value": value, "passed": passed, **more}


INTERACTION: dict[str, Any] = {
    "available": True,
    "source": "events",
    "total_commands": 4,
    "error_count": 1,
    "first_try_success_rate": 0.5,
    "help_seeking": 1,
    "retries_after_failure": 1,
    "unknown_exit": 0,
    "subcommands": [
        {"name": "export", "calls": 3, "errors": 1, "first_tries": 1, "helps": 1, "retries_after_failure": 1}
    ],
}
"""Three calls of a subcommand and one for its help, as layer 1 stores them of a trial."""


def interaction_scores(metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """Return layer 1's scores of a trial with these metrics of its commands."""
    total = metrics["total_commands"]
    return [
        score("interaction", "first_try_success_rate", metrics["first_try_success_rate"]),
        score("interaction", "error_rate", metrics["error_count"] / total),
        score("interaction", "total_commands", float(total)),
    ]


def scores_of(outcome: str) -> list[dict[str, Any]]:
    """Return what the three layers would say of a trial with this outcome."""
    passed = outcome == "pass"
    failed = {
        "message": "out.txt does not exist.",
        "detail": {"path": "out.txt", "expected": "a file", "actual": "none"},
    }
    return [
        *interaction_scores(INTERACTION),
        score("gates", "file_exists", float(passed), passed, **({} if passed else failed)),
        score("judge", "judge", 0.8 if passed else 0.4, passed),
        score("judge", "criterion.efficiency", 0.7),
    ]


def used(*subcommands: dict[str, Any], **attempts: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return the detail of a trial that called these subcommands, and how the attempts at them went."""
    sums = _sums(subcommands) if subcommands else {}
    return {"interaction": {**INTERACTION, **sums, "subcommands": list(subcommands)}, "attempts": attempts}


def _sums(subcommands: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what layer 1 counts over these subcommands; every call for help works at the first try."""
    names = ("calls", "errors", "first_tries", "helps", "retries_after_failure")
    calls, errors, first, helps, retries = (sum(each.get(name, 0) for each in subcommands) for name in names)
    return {
        "total_commands": calls + helps,
        "error_count": errors,
        "error_rate": errors / (calls + helps),
        "first_try_success_rate": (first + helps) / (calls + helps),
        "help_seeking": helps,
        "retries_after_failure": retries,
    }


def make_trial(
    run: Run, key: str = "", *, outcome: str = "pass", index: int | None = None, **changes: Any
) -> Trial:
    """Return a trial of a run with its scores; an empty outcome is one that has not ended."""
    entries = run.suite_version.entries.select_related("scenario_version__scenario")
    entry = entries.filter(scenario_version__scenario__key=key).first() if key else entries.first()
    scenario_version = entry.scenario_version
    number = index if index is not None else run.trial_set.filter(scenario=scenario_version.scenario).count()
    trial = _trial(run, scenario_version, number, outcome, **changes)
    trial.save()
    _count(run)
    return trial


def _trial(run: Run, scenario_version: ScenarioVersion, index: int, outcome: str, **changes: Any) -> Trial:
    standard: dict[str, Any] = {
        "state": "finished" if outcome else "queued",
        "seconds": 1.5,
        "completed": outcome != "error",
    }
    if outcome in ("pass", "fail"):
        standard |= {"scores": scores_of(outcome), "detail": {"interaction": {**INTERACTION}}, "exit_code": 0}
    return Trial(
        run=run,
        scenario_version=scenario_version,
        scenario=scenario_version.scenario,
        index=index,
        position=index,
        outcome=outcome,
        **{**standard, **changes},
    )


def make_trials(run: Run, outcomes: Mapping[str, Sequence[str]], **changes: Any) -> None:
    """Store trials of a run with these outcomes by scenario, as many `make_trial` do."""
    entries = run.suite_version.entries.select_related("scenario_version__scenario")
    versions = {entry.scenario_version.scenario.key: entry.scenario_version for entry in entries}
    Trial.objects.bulk_create(
        _trial(run, versions[key], index, outcome, **changes)
        for key, each in outcomes.items()
        for index, outcome in enumerate(each)
    )
    _count(run)


def _count(run: Run) -> None:
    trials = list(run.trial_set.values_list("state", "outcome"))
    run.trials = len(trials)
    run.open = sum(state in ("queued", "running") for state, _ in trials)
    for counter, outcome in (("passed", "pass"), ("failed", "fail"), ("errors", "error")):
        setattr(run, counter, sum(each == outcome for _, each in trials))
    if not run.is_open:
        run.outcome = "fail" if run.failed else "error" if run.errors else "pass" if run.passed else ""
    run.save()


def close(run: Run) -> Run:
    """Write a run's rollups, as its last trial's recording does."""
    write_rollups(run, is_new=run.rollups_at is None)
    return run


def make_compared(
    version: SuiteVersion, outcomes: Mapping[str, str | Sequence[str]], *, trials: int = 1, **changes: Any
) -> Run:
    """Return a closed run compared with its baseline.

    `outcomes` holds a scenario's outcome, repeated for `trials` trials, or that of each of its trials.
    """
    run = make_run(version, **changes)
    make_trials(
        run, {key: [each] * trials if isinstance(each, str) else each for key, each in outcomes.items()}
    )
    with transaction.atomic():
        compare_with_baseline(close(run))
    return run


def make_subcommand(run: Run, name: str = "export", **counts: int) -> SubcommandMeasure:
    return SubcommandMeasure.objects.create(run=run, subcommand=name, **{"calls": 10, "errors": 5, **counts})
