"""What is found before any trial is spent: whether target and tool can work, and which versions they are."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.engine import lanes, preparation, run_here
from runs.models import Run, RunSlot, Trial
from runs.targets.definitions import definition_hash
from scenarios.formats.parsed import FixtureFile
from scenarios.models import Rubric
from scenarios.storing import store_fixture
from tests.builders import make_project, make_suite
from tests.runs.carrying import NO_GATES, launch, shell_target, suite_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


def test_the_fingerprint_names_fixtures_and_rubrics():
    project = make_project()
    edits = {"fixture": "shop", **NO_GATES}
    version = suite_of(project, a=edits, b=edits, c={"fixture": "garden", **NO_GATES}, d=edits)
    fixtures = [store_fixture(project, (FixtureFile("a.txt", name),)) for name in (b"shop", b"garden")]
    rubric = Rubric.objects.create(project=project, sha256="c" * 64, name="capture", content={})
    stored = {each.scenario.key: each for each in version.scenario_versions.all()}
    for key, fixture in (("a", fixtures[0]), ("b", fixtures[0]), ("c", fixtures[1]), ("d", None)):
        stored[key].fixture, stored[key].rubric = fixture, rubric if key == "a" else None
        stored[key].save()
    started = launch(version)
    run_here.run_here(started)
    fingerprint = started.runs.get().fingerprint
    assert fingerprint["names"] == {"fixture": "garden, shop", "rubric": "capture"}
    assert fingerprint["rubric"] == rubric.sha256
    plain = launch(make_suite(project, **NO_GATES))
    run_here.run_here(plain)
    assert plain.runs.get().fingerprint["names"] == {}


def test_a_targets_workers_do_not_change_the_fingerprint():
    project = make_project()
    target, version = shell_target(project), suite_of(project, a={"prompt": "true"})

    def target_hash() -> str:
        started = launch(version, targets=["shell"])
        run_here.run_here(started)
        return str(started.runs.get().fingerprint["target_sha256"])

    def edited(**changes: object) -> str:
        target.definition = {**target.definition, **changes}
        target.save()
        return target_hash()

    first = target_hash()
    assert len(first) == 64
    assert edited(workers=3) == first
    assert edited(timeout_seconds=30) != first


@pytest.mark.parametrize(
    ("asked", "variable", "of_target", "of_project", "judge"),
    [
        ("asked", "variable", "of-target", "of-project", "asked"),
        ("", "variable", "of-target", "of-project", "variable"),
        ("", "", "of-target", "of-project", "of-target"),
        ("", "", "", "of-project", "of-project"),
        ("", "", "", "", ""),
    ],
)
@pytest.mark.spec("llm-tool-test", "The judge's model by variable or file")
def test_the_fingerprint_names_the_judge_that_is_asked(
    settings, asked, variable, of_target, of_project, judge
):
    settings.DEFAULT_JUDGE = variable
    project = make_project()
    Project.objects.update(judge=of_project)
    shell_target(project, **({"judge_target": of_target} if of_target else {}))
    launched = launch(suite_of(project, a={"prompt": "true"}), targets=["shell"])
    run = launched.runs.get()
    run.options = {**run.options, "judge_model": asked}
    run.save()
    run_here.run_here(launched)
    run.refresh_from_db()
    assert run.fingerprint["judge"] == judge


def test_the_fingerprint_changes_with_the_judges_definition():
    project = make_project()
    version = suite_of(project, a={"prompt": "true"})
    judge = shell_target(project, name="judge")
    shell_target(project, judge_target="judge")

    def judge_parts(*, asks: bool = True) -> tuple[str, str]:
        launched = launch(version, targets=["shell"])
        run = launched.runs.get()
        run.options = {**run.options, "judge": asks}
        run.save()
        run_here.run_here(launched)
        run.refresh_from_db()
        return run.fingerprint["judge"], run.fingerprint["judge_sha256"]

    name, before = judge_parts()
    judge.definition = {**judge.definition, "timeout_seconds": 30}
    judge.save()
    assert name == "judge"
    assert judge_parts() == ("judge", definition_hash(judge.definition)) != ("judge", before)
    assert judge_parts(asks=False) == ("", "")


def test_trials_use_the_target_version_of_their_preparation():
    project = make_project()
    target = shell_target(project)
    run = launch(suite_of(project, a={"prompt": "true"}), targets=["shell"]).runs.get()
    assert preparation.prepare_run(run.pk)
    target.definition = {**target.definition, "command_template": "exit 7"}
    target.save()
    lanes.run_lane(run.pk)
    run.refresh_from_db()
    assert run.trial_set.get().exit_code == 0
    assert run.target_version.sha256 == run.fingerprint["target_sha256"]
    again = launch(run.suite_version, targets=["shell"]).runs.get()
    run_here.run_here(again.launch)
    assert again.trial_set.get().exit_code == 7
    assert target.versions.count() == 2


def test_a_prepared_run_has_as_many_slots_as_it_may_use_at_once():
    project = make_project()
    shell_target(project)
    run = launch(
        suite_of(project, a={"prompt": "true"}), targets=["shell"], trials=3, concurrency=2
    ).runs.get()
    assert not RunSlot.objects.filter(run=run).exists()
    assert preparation.prepare_run(run.pk)
    assert RunSlot.objects.filter(run=run).count() == 2


def test_a_target_that_cannot_work_spends_no_trial():
    project = make_project()
    shell_target(project, healthcheck={"type": "command", "command_template": "echo asleep; exit 1"})
    run = launch(suite_of(project, a={"prompt": "true"}), targets=["shell"]).runs.get()
    assert not preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.cancelled, run.open) == ("finished", "error", 1, 0)
    assert "asleep" in run.error
    assert not Trial.objects.filter(starts__gt=0).exists()
    check = run.target.checks.get()
    assert (check.available, "asleep" in check.sentence) == (False, True)


def test_a_target_that_a_run_was_prepared_for_is_known_to_be_ready():
    project = make_project()
    shell_target(project)
    version = suite_of(project, a={"prompt": "true"})
    for _ in range(2):
        run = launch(version, targets=["shell"]).runs.get()
        assert preparation.prepare_run(run.pk)
    check = run.target.checks.get()
    assert check.available and check.worker and check.at >= run.created


def run_of(**tool: str) -> Run:
    """Return a queued run whose one scenario names a tool with these commands."""
    project = make_project()
    shell_target(project)
    criteria = {"tool": {"binary": "nope", **tool}}
    return launch(suite_of(project, a={"prompt": "true", "criteria": criteria}), targets=["shell"]).runs.get()


def test_a_tool_that_does_not_answer_spends_no_trial():
    run = run_of(health_check="no-such-tool --version")
    assert not preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert "no-such-tool --version' ended with exit code 127" in run.error
    assert run.error.endswith("fix the command in the scenario's target section.")


def test_the_version_of_the_tool_is_its_version_commands_first_line():
    run = run_of(health_check="echo healthy", version_command="printf '7.1\\nmore'")
    assert preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert (run.tool_version, run.fingerprint["tool_version"]) == ("7.1", "7.1")


def test_a_version_command_that_fails_is_a_warning():
    run = run_of(health_check="printf 'ready\\000'", version_command="exit 3")
    assert preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert run.tool_version == "ready\ufffd"
    assert "'exit 3' ended with exit code 3" in run.warnings[0]


def test_a_preparation_that_breaks_ends_the_run_with_the_reason():
    run = launch().runs.get()
    Run.objects.filter(pk=run.pk).update(options={"trials": "no number"})
    assert not preparation.prepare_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.cancelled) == ("finished", "error", 2)
    assert "in evalhub itself" in run.error
