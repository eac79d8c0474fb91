"""A tool whose subcommand breaks for good is named the night it breaks, by real trials of a shell agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalhub.teams.access import default_project
from runs.compare.retests import retests_of
from runs.models import Run, Trial
from tests.commands.calling import call
from tests.runs.carrying import shell_target
from tests.runs.yard import install, make_yard

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    """Return the suite, beside a target that carries it out."""
    shell_target(default_project())
    return make_yard(tmp_path)


def run_of(folder: Path, *words: str, code: int = 0) -> Run:
    ended = call("run_scenarios", str(folder), "--target", "shell", "--now", "--trials", "3", *words)
    assert ended.code == code, (ended.out, ended.err)
    return Run.objects.order_by("pk").last()


def test_a_renamed_option_is_named_in_the_first_run(yard):
    run_of(yard)
    run_of(yard)
    ended = call(
        "run_scenarios", str(install(yard, "--distance")), "--target", "shell", "--now", "--trials", "3"
    )
    run = Run.objects.order_by("pk").last()
    (retest,) = retests_of(run)
    assert (run.find_retested("named"), retest.fresh.passed) == (["return-bike"], 0)
    assert retest.fresh.trials == retest.planned >= 6
    assert f"return-bike: failed tonight, and {retest.planned} of {retest.planned} again." in ended.out
    assert (run.trials, run.failed) == (9, 3)
    planned = call("run_scenarios", str(yard), "--target", "shell", "--trials", "3", "--dry-run", "--json")
    assert planned.document["retests"]["greatest"] == 36


@pytest.mark.slow
def test_what_two_targets_lose_is_said_in_one_sentence(yard, tmp_path):
    shell_target(default_project(), name="other")
    summary = tmp_path / "summary.md"

    def run(*words: str):
        both = ("--target", "shell", "--target", "other")
        return call("run_scenarios", str(yard), *both, "--now", "--trials", "3", *words)

    run()
    run()
    install(yard, "--distance")
    ended = run("--fail-on-regression", "--summary-file", str(summary))
    assert ended.code == 3
    assert "return-bike broke on shell, other." in ended.out
    assert summary.read_text().startswith("return-bike broke on shell, other.")


@pytest.mark.slow
def test_it_can_be_left_out_of_a_command(yard):
    run_of(yard)
    run = run_of(install(yard, "--distance"), "--no-retest", code=1)
    assert (run.retests, Trial.objects.filter(run=run, is_retest=True).exists()) == ([], False)
    planned = call("run_scenarios", str(yard), "--target", "shell", "--no-retest", "--dry-run")
    assert "run again" not in planned.out


def test_two_guidances_are_run_again_in_turn(yard, tmp_path):
    install(yard, "--distance")
    (tmp_path / "good.md").write_text("./yard return blue --distance 12\n")
    (tmp_path / "poor.md").write_text("./yard return blue --miles 12\n")
    arms = ("--guidance", str(tmp_path / "good.md"), "--guidance", str(tmp_path / "poor.md"))
    words = ("run_scenarios", str(yard), "--target", "shell", "--now", "--trials", "3", *arms)
    assert call(*words, "--fail-on-regression").code == 3
    old, new = Run.objects.order_by("pk")
    assert (old.verdict, new.verdict, new.baseline) == ("", "regressed", old)
    (retest,) = retests_of(new)
    assert (retest.kind.value, retest.old, retest.fresh) == ("in_turn", (6, 6), (0, 6))
    assert new.find_retested("named") == ["return-bike"]
    assert (old.retests, Trial.objects.filter(run=old, is_retest=True).count()) == ([], 6)
