"""Options that cannot be: one sentence and 2, before anything runs."""

from __future__ import annotations

import pytest
from django.core.management.base import CommandError

from evalhub.teams.access import default_project
from runs.models import Launch
from tests.builders import make_run, make_suite, make_target
from tests.commands.calling import call

pytestmark = pytest.mark.one_database

ENDLESS = "/dev/zero"
TOO_LARGE = "cannot be read: it is larger than 20,971,520 bytes. Check the path."


@pytest.fixture
def suite(db: None) -> str:
    project = default_project()
    make_target(project, name="one")
    make_target(project, name="two")
    make_suite(project, name="small")
    return "small"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--tier", "-1"], "--tier is -1: input should be greater than or equal to 0."),
        (["--timeout-seconds", "inf"], "--timeout-seconds is inf: input should be a finite number."),
        (["--trials", "0"], "--trials is 0: input should be greater than or equal to 1."),
        (["--targets", ENDLESS], f"{ENDLESS}: The targets {TOO_LARGE}"),
        (["--config", ENDLESS], f"{ENDLESS}: The configuration {TOO_LARGE}"),
        (["--seed-manifest", ENDLESS], f"{ENDLESS}: The seed manifest {TOO_LARGE}"),
        (["--tier", "-1", "--dry-run"], "--tier is -1: input should be greater than or equal to 0."),
        (["--shard", "7/7"], "Shard 7/7 of small is empty: 2 scenarios can be split into 2 shards at most."),
    ],
)
def test_an_invalid_option_is_reported(suite, words, sentence):
    ended = call(
        "run_scenarios", suite, "--target", "one", *words, *(() if "--dry-run" in words else ("--now",))
    )
    assert (ended.code, ended.err.strip()) == (2, sentence)
    assert not Launch.objects.exists()


@pytest.mark.parametrize("shard", ["0/3", "4/3", "1", "a/b"])
def test_a_shard_that_is_none_is_wrong_use(shard):
    with pytest.raises(CommandError, match=f"{shard} is not a shard"):
        call("run_scenarios", "small", "--shard", shard, "--now")


def test_several_targets_are_named_to_choose_from(suite):
    ended = call("run_scenarios", suite, "--dry-run")
    assert (ended.code, ended.err.strip()) == (2, "Several targets could run this: one, two. Choose one.")


@pytest.mark.parametrize(
    ("words", "is_warned"),
    [([], True), (["--trials", "6"], False), (["--regression-rule", "pass-fail"], False)],
    ids=["one trial", "six trials", "pass-fail"],
)
def test_a_plan_that_can_show_no_regression_says_so(suite, words, is_warned):
    ended = call("run_scenarios", suite, "--target", "one", "--fail-on-regression", *words)
    sentence = "small: 2 scenarios with 1 trial each can't show a regression, whatever the results are."
    assert (sentence in ended.err) is is_warned
    assert Launch.objects.exists()


def test_guidance_that_is_too_large_is_reported(suite, tmp_path):
    large = tmp_path / "AGENTS.md"
    with large.open("wb") as file:
        file.truncate(21 * 1024 * 1024)
    ended = call("run_scenarios", suite, "--target", "one", "--guidance", str(large), "--dry-run")
    assert (ended.code, ended.err.strip()) == (2, f"{large}: The guidance {TOO_LARGE}")


def test_counts_are_in_the_number_they_have(suite, tmp_path):
    out = call("run_scenarios", suite, "--target", "one", "--only", "create", "--dry-run").out
    assert out.strip() == "small v1 on one: 1 trial"
    (tmp_path / "tab.yaml").write_text("a:\n\tb: 1\n")
    assert call("check_scenarios", str(tmp_path / "tab.yaml")).out.strip().endswith("1 problem, 0 hints.")


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["show_run", "export_run", "set_baseline", "compare_runs"])
def test_a_number_that_no_run_can_have_is_none(command):
    number = "9" * 23
    before = [str(make_run(make_suite(default_project())).pk)] if command == "compare_runs" else []
    ended = call(command, *before, number)
    assert (ended.code, ended.err.startswith(f"There is no run {number}.")) == (2, True)
