"""From a request to queued trials."""

from __future__ import annotations

from typing import Any

import pytest

from evalhub.teams.models import AuditEvent
from runs.errors import NoJudge, NothingToRun, RequestError, UnknownTarget
from runs.launch.request import Request, find_unjudged_trials, plan, request_runs
from runs.models import Launch, Run, Trial
from runs.models.run import Trigger
from runs.models.run_options import RunOptions, Selection
from runs.workers.worker_registry import WorkerJudge
from tests.builders import make_guidance, make_member, make_project, make_suite, make_target
from tests.runs.carrying import suite_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Any:
    made = make_project()
    make_target(made, "local")
    return made


def keys(project: Any, **selection: Any) -> list[str]:
    version = suite_of(
        project,
        a={"tags": ["git", "smoke"], "tier": 0},
        b={"tags": ["git"], "tier": 1},
        c={"tags": ["slow"], "tier": 2},
    )
    (run,) = plan(project, Request([version], selection=Selection(**selection)))
    return [scenario.key for scenario in run.scenarios]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, ["a", "b", "c"]),
        ({"tags": ("git",)}, ["a", "b"]),
        ({"tags": ("smoke,slow",)}, ["a", "c"]),
        ({"tags": ("git", "smoke")}, ["a"]),
        ({"tier": 1}, ["a", "b"]),
        ({"only": ("c",)}, ["c"]),
        ({"only": ("a", "c"), "tier": 0}, ["a"]),
    ],
    ids=["all", "a tag", "one of two tags", "both tags", "up to a tier", "a key", "keys and tier"],
)
def test_it_takes_what_is_chosen(project, selection, expected):
    assert keys(project, **selection) == expected


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [({"only": ("d",)}, "has no scenario 'd'. It has: a, b, c."), ({"tags": ("none",)}, "No scenario of")],
    ids=["an unknown key", "nothing left"],
)
def test_it_refuses_to_run_nothing(project, selection, sentence):
    with pytest.raises(NothingToRun, match=sentence):
        keys(project, **selection)


def test_it_makes_a_run_for_each_target_model_and_guidance(project):
    make_target(project, "other")
    version = make_suite(project)
    guidance = [make_guidance(version.suite, name) for name in ("short", "long")]
    request = Request([version], targets=["local", "other"], models=["m1", "m2"], guidance=guidance)
    runs = plan(project, request)
    found = {(each.run.target.name, each.run.model, str(each.run.guidance)) for each in runs}
    assert len(runs) == len(found) == 8


def test_a_matrix_selects_the_targets_of_each_scenario(project):
    make_target(project, "other")
    version = suite_of(
        project,
        a={"matrix": [{"target": "local", "models": ["m1", "m2"]}]},
        b={"matrix": [{"target": "other", "models": []}, {"target": "local", "models": ["m1"]}]},
    )
    found = {
        (each.run.target.name, each.run.model): [scenario.key for scenario in each.scenarios]
        for each in plan(project, Request([version]))
    }
    assert found == {("local", "m1"): ["a", "b"], ("local", "m2"): ["a"], ("other", ""): ["b"]}


def test_a_target_of_a_matrix_is_found_by_its_other_name(project):
    version = suite_of(
        project, a={"matrix": [{"target": "Local", "id": "local"}, {"target": "local", "id": "x"}]}
    )
    assert {each.run.target.name for each in plan(project, Request([version]))} == {"local"}
    version = suite_of(project, a={"matrix": [{"target": "Nowhere", "id": "gone"}]})
    with pytest.raises(UnknownTarget, match="called 'Nowhere'"):
        plan(project, Request([version]))


def test_targets_that_are_asked_for_win_over_the_matrix(project):
    version = suite_of(project, a={"matrix": [{"target": "nowhere", "models": []}]})
    (planned,) = plan(project, Request([version], targets=["local"]))
    assert planned.run.target.name == "local"


def test_an_unknown_target_gets_a_suggestion(project):
    with pytest.raises(UnknownTarget, match="Did you mean 'local'"):
        plan(project, Request([make_suite(project)], targets=["lokal"]))


def test_a_proposal_is_not_a_target_yet(project):
    make_target(project, "new", accepted=False)
    with pytest.raises(UnknownTarget, match="Ask an admin to accept it"):
        plan(project, Request([make_suite(project)], targets=["new"]))


def test_several_targets_and_no_choice_are_refused(project):
    make_target(project, "other")
    with pytest.raises(UnknownTarget, match=r"this: local, other\. Choose one"):
        plan(project, Request([make_suite(project)]))


def test_a_target_of_another_project_is_unknown(project):
    make_target(make_project("others"), "theirs")
    with pytest.raises(UnknownTarget, match="no target called 'theirs'"):
        plan(project, Request([make_suite(project)], targets=["theirs"]))


def test_a_suite_of_another_project_is_refused_and_nothing_is_stored(project):
    version = make_suite(make_project("others"))
    with pytest.raises(RequestError, match="belongs to another project"):
        request_runs(project, Request([version]), by=None, trigger=Trigger.API, wake=False)
    assert not Launch.objects.exists()


def test_the_guidance_of_the_last_upload_is_taken(project):
    version = make_suite(project)
    guidance = make_guidance(version.suite)
    version.suite.uploads.update(guidance=guidance)
    (planned,) = plan(project, Request([version]))
    assert planned.run.guidance == guidance


def test_it_stores_runs_and_their_trials(project):
    ada = make_member(project, "runner", "ada")
    request = Request(
        [make_suite(project)],
        options=RunOptions(trials=3, concurrency=2),
        labels={"branch": "main", "commit": "abc", "tags": ["night"]},
    )
    launch = request_runs(project, request, by=ada, trigger=Trigger.WEB, wake=False)
    run = launch.runs.get()
    assert (run.trials, run.open, run.concurrency, run.branch, run.tags) == (6, 6, 2, "main", ["night"])
    assert Trial.objects.filter(run=run, state="queued").count() == 6
    event = AuditEvent.objects.get(action="run.request")
    assert (event.user, event.subject) == (ada, f"run {run.pk}")


def test_several_runs_of_one_request_are_named_by_their_numbers(project):
    make_target(project, "one")
    make_target(project, "two")
    request = Request([make_suite(project)], targets=["one", "two"])
    launch = request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)
    first, second = launch.runs.order_by("pk")
    named = AuditEvent.objects.get(action="run.request").subject
    assert named == f"2 runs, {first.pk} to {second.pk}"


def test_without_a_concurrency_the_workers_of_the_target_are_it(project):
    make_target(project, "wide", workers=7)
    request = Request([make_suite(project)], targets=["wide"])
    launch = request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)
    assert Run.objects.get(launch=launch).concurrency == 7


def test_workers_are_woken_only_after_the_commit(project, django_capture_on_commit_callbacks, monkeypatch):
    with django_capture_on_commit_callbacks() as callbacks:
        request_runs(project, Request([make_suite(project)]), by=None, trigger=Trigger.CLI)
    assert len(callbacks) == 1


JUDGED = {"rubric": {"criteria": [{"id": "a", "weight": 1, "description": "Good"}]}, "pass_threshold": 0.5}


def unjudged(project, *workers, gates=(), **changes):
    """Return the trials that nothing could judge of a suite whose scenario has this judge."""
    scenario = {"criteria": {"judge": {**JUDGED, **changes}, "gates": list(gates)}}
    planned = plan(project, Request([suite_of(project, a=scenario)]))
    return find_unjudged_trials(project, planned, RunOptions(), lambda: workers)


WITHOUT, WITH = WorkerJudge(False, None), WorkerJudge(True, None)
GATE = {"type": "file_exists", "path": "out.txt"}


def test_trials_that_nothing_could_judge_are_named(project):
    found = unjudged(project, WITHOUT)
    assert found.sentence.startswith(
        "1 of 1 trial can't be judged, because nothing names a judge (a): name one"
    )
    assert "--no-judge" in found.sentence
    assert found.refusal == found.sentence
    assert unjudged(project, WITHOUT, model="openai/m") is unjudged(project, WITHOUT, enabled=False) is None
    assert unjudged(project, WITHOUT, WITH) is None
    project.judge = "openai/m"
    assert unjudged(project, WITHOUT) is None


def test_what_else_decides_may_start_with_a_warning(project):
    found = unjudged(project, WITHOUT, gates=[GATE])
    assert (found.refusal, found.warning) == ("", found.sentence)


def test_a_worker_that_may_take_it_counts_by_its_labels(project):
    project.targets.update(labels=["gpu"])
    assert unjudged(project, WorkerJudge(True, ["gpu", "x"]), WorkerJudge(False, [])) is None
    assert unjudged(project, WorkerJudge(True, []), WorkerJudge(False, ["gpu"])).refusal
    # Which worker will take it is unknown: it refuses by itself.
    assert not unjudged(project, WorkerJudge(True, [])).refusal


def test_a_launch_that_nothing_could_judge_is_not_stored(project, settings):
    settings.DEFAULT_JUDGE = ""
    request = Request([suite_of(project, a={"criteria": {"judge": JUDGED}})])
    with pytest.raises(NoJudge, match="name one with --judge-model"):
        request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)
    assert not Launch.objects.exists()
    settings.DEFAULT_JUDGE = "openai/m"
    request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)
    assert Launch.objects.count() == 1


@pytest.mark.spec("llm-tool-test", "Recommended small judges")
def test_the_default_judge_is_recommended_by_the_keys_that_are_set(project, settings, monkeypatch):
    settings.ENV_ALLOW = ["*:OPENAI_API_KEY"]
    request = Request([suite_of(project, a={})], options=RunOptions(judge_model="default"))
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(RequestError, match="none of OPENAI_API_KEY, ANTHROPIC_API_KEY is set"):
        request_runs(project, request, by=None, trigger=Trigger.API)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (run,) = request_runs(project, request, by=None, trigger=Trigger.API).runs.all()
    assert run.options["judge_model"] == "openai/gpt-4o-mini"


@pytest.mark.spec("llm-tool-test", "A session's turns")
def test_turns_are_limited_only_on_agents_that_can(project):
    make_target(project, "coder", provider="codex", definition={"name": "coder", "provider": "codex"})
    make_target(
        project, "claude", provider="claude_code", definition={"name": "claude", "provider": "claude_code"}
    )
    version = suite_of(project, a={"limits": {"max_turns": 9}, "file": "s/a.yaml", "line": 1})
    assert plan(project, Request([version], ["claude"]))
    with pytest.raises(RequestError, match=r"^s/a.yaml:1: run.max_turns: the target 'coder' \(codex\) can't"):
        plan(project, Request([version], ["coder"]))


PROFILES = {
    "tools": {"claude": {"name": "claude-code", "models": ["m", "n"]}, "local": {"models": ["m"]}},
    "profiles": {
        "quick": {"tools": ["claude", "local"], "models": ["m"]},
        "wide": {"tools": ["local"], "models": ["m", "n"]},
    },
}


@pytest.mark.spec("llm-tool-test", "Profiles of the settings file")
def test_a_profile_names_targets_and_models(project):
    make_target(project, "claude-code")
    version = suite_of(project, a={"matrix": [{"target": "none", "models": []}]})
    version.config = PROFILES
    planned = plan(project, Request([version], profile="quick"))
    arms = [(each.run.target.name, each.run.model) for each in planned]
    assert arms == [("claude-code", "m"), ("local", "m")]
    for request, sentence in (
        (
            Request([version], profile="wide"),
            "'local' of the profile 'wide' does not support the model 'n'. It has: m.",
        ),
        (Request([version], profile="none"), "no profile 'none' in its settings. It has: quick, wide."),
        (Request([version], ["local"], profile="quick"), "Leave out the targets and models, or the profile."),
    ):
        with pytest.raises(RequestError, match=sentence):
            plan(project, request)
