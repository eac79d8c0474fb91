"""Where the failing trials of a run part ways with the passing ones of another."""

from __future__ import annotations

import pytest

from runs.compare.side_by_side import EndedTrial, compared_with_first, first_divergences
from runs.models import Run
from tests.builders import close, make_project, make_run, make_suite, make_trial
from tests.commands.calling import call
from tests.diverging import ALIKE, BAD, GOOD, diverging_runs, run_commands

KEYS = ("create", "export", "list")


@pytest.fixture
def version(db):
    return make_suite(make_project(), KEYS)


def compared(*runs):
    return compared_with_first(
        [Run.objects.select_related("project", "guidance").get(pk=run.pk) for run in runs]
    )


def test_the_command_that_most_failing_scenarios_begin_with_is_named(version):
    found = compared(*diverging_runs(version))[0].divergences
    assert (found.newly_failing, sorted(found.scenarios)) == (3, ["create", "export"])
    assert found.sentence == ALIKE
    apart = found.scenarios["create"].divergence
    assert (apart.number, apart.before, apart.after) == (2, "deploy --env", "deploy --target")


def test_scenarios_are_in_order_however_they_are_given(version):
    runs = diverging_runs(version)
    sides = {
        key: tuple(
            [EndedTrial(run.trial_set.get(scenario__key=key).pk, outcome)]
            for run, outcome in zip(runs, ("pass", "fail"), strict=True)
        )
        for key in ("export", "create")
    }
    found = first_divergences([run.pk for run in runs], sides)
    assert list(found.scenarios) == ["create", "export"]


def test_a_command_of_a_single_scenario_is_no_pattern(version):
    base, new = make_run(version), make_run(version)
    run_commands(make_trial(base, "create"), GOOD)
    run_commands(make_trial(new, "create", outcome="fail"), BAD)
    found = compared(close(base), close(new))[0].divergences
    assert (found.most_common, found.sentence) == (("deploy --target", 1), "")


def test_scenarios_that_do_not_fail_newly_are_not_searched(version, django_assert_max_num_queries):
    base, new = make_run(version), make_run(version)
    for run in (base, new):
        run_commands(make_trial(run, "create"), GOOD)
        run_commands(make_trial(run, "export", outcome="fail"), BAD)
        close(run)
    with django_assert_max_num_queries(5):
        found = compared(base, new)[0].divergences
    assert (found.newly_failing, found.scenarios, found.sentence) == (0, {}, "")


def test_the_command_line_names_it(version):
    base, new = diverging_runs(version)
    assert ALIKE in call("compare_runs", str(base.pk), str(new.pk)).out
    document = call("compare_runs", str(base.pk), str(new.pk), "--json").document
    assert document["first_divergences"]["most_common"] == {"command": "deploy --target", "scenarios": 2}
    assert document["first_divergences"]["newly_failing"] == 3


def test_the_command_line_compares_several_runs_with_the_first(version):
    base, new = diverging_runs(version)
    same = make_run(version)
    for key in KEYS:
        make_trial(same, key)
    close(same)
    words = ("compare_runs", *(str(run.pk) for run in (base, same, new)))
    ended = call(*words)
    assert f"Run {same.pk} against run {base.pk}" in ended.out
    assert ALIKE in ended.out
    document = call(*words, "--json").document
    assert [each["after"] for each in document["comparisons"]] == [same.pk, new.pk]


def test_the_command_line_compares_at_most_ten_runs(version):
    ended = call("compare_runs", *map(str, range(1, 12)))
    assert ended.code == 2
    assert "You can compare at most 10 runs at once; 11 are given." in ended.err
