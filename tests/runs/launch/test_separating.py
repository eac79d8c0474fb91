"""Causes of a regression: what changed, and the fresh runs that set them apart."""

from __future__ import annotations

import pytest

from runs.compare.comparison import compare_named, compare_with_baseline
from runs.compare.differences import FACTORS, causes_of, changed_factors
from runs.errors import RequestError
from runs.launch.separation import request_separation, separation_of
from runs.models import Run, Trial
from runs.targets.definitions import version_of
from tests.builders import (
    close,
    make_compared,
    make_guidance,
    make_project,
    make_run,
    make_suite,
    make_target,
    score,
)
from tests.evaluators.statistics.simulated_separations import shares

pytestmark = pytest.mark.django_db
KEYS = tuple(f"task-{number}" for number in range(10))


@pytest.fixture
def version():
    return make_suite(make_project(), KEYS, name="Basics")


def regressed(version, **changes):
    """Return a regressed run since whose baseline guidance, model and tool changed."""
    old, new = make_guidance(version.suite, "v1"), make_guidance(version.suite, "v2")
    base = {"guidance": old.sha256, "model": "m1", "tool_version": "1.0"}
    make_compared(version, dict.fromkeys(KEYS, "pass"), trials=2, guidance=old, model="m", fingerprint=base)
    after = {"guidance": new.sha256, "model": "m1", "tool_version": "2.0", **changes}
    return make_compared(
        version,
        dict.fromkeys(KEYS, "fail"),
        trials=2,
        guidance=new,
        model="m",
        fingerprint=after,
        cost_usd=0.5,
        options={"trials": 10},
    )


def finish(run, outcome):
    """Finish a queued run as its worker would, with the same outcome in every trial."""
    passed = outcome == "pass"
    Trial.objects.filter(run=run).update(
        state="finished", outcome=outcome, scores=[score("gates", "file_exists", float(passed), passed)]
    )
    run = Run.objects.get(pk=run.pk)
    run.state, run.outcome, run.open = "finished", outcome, 0
    run.save()
    compare_with_baseline(close(run))
    compare_named(run)


def test_each_cause_comes_with_its_earlier_regressions(version):
    earlier = regressed(version)
    Run.objects.filter(pk=earlier.baseline_id).update(fingerprint={"tool_version": "0.9"})
    Run.objects.filter(pk=earlier.pk).update(fingerprint={"tool_version": "1.0"})
    run = regressed(version)
    run.baseline.refresh_from_db()
    found = [(cause.factor, cause.regressions, cause.of) for cause in causes_of(run, run.baseline)]
    assert found == [("tool", 1, 1), ("guidance", 0, 1)]


def test_parts_that_only_one_run_knows_are_no_cause():
    assert changed_factors({"tool_version": "1"}, {"tool_version": "1", "judge": "j"}) == []


@pytest.mark.parametrize(
    ("control", "arm", "conclusion"),
    [
        ("fail", "pass", "point at: guidance"),
        ("pass", "pass", "did not regress, so the regression may be chance"),
        ("fail", "fail", "point at: tool. With the baseline's guidance, the results still regress."),
    ],
    ids=["what helps", "chance", "what is left"],
)
@pytest.mark.parametrize("first", ["control", "arm"])
def test_fresh_runs_point_at_a_cause(version, control, arm, conclusion, first):
    run = regressed(version)
    same, older = request_separation(run.pk, by=None)
    assert (same.guidance_id, older.guidance_id) == (run.guidance_id, run.baseline.guidance_id)
    assert same.trials == older.trials == 100
    assert separation_of(run).conclusion == ""
    ends = [(same, control), (older, arm)]
    for each, outcome in ends if first == "control" else ends[::-1]:
        finish(each, outcome)
    assert conclusion in separation_of(run).conclusion


def test_too_few_trials_beside_the_control_still_show_a_cause_that_is_left(version):
    run = regressed(version)
    same, older = request_separation(run.pk, by=None)
    finish(same, "fail")
    finish(older, "fail")
    # What small runs read beside their control, where nothing was found.
    Run.objects.filter(pk=older.pk).update(verdict="too_little")
    found = separation_of(run)
    assert found.against_baseline == {"": "regressed", "guidance": "regressed"}
    assert "point at: tool" in found.conclusion


def test_what_helps_and_still_regresses_is_not_the_only_cause(version):
    run = regressed(version)
    same, older = request_separation(run.pk, by=None)
    finish(same, "fail")
    finish(older, "fail")
    Run.objects.filter(pk=older.pk).update(verdict="improved")
    assert "There may be more than one cause: with the baseline's guidance" in separation_of(run).conclusion


@pytest.mark.simulation
def test_a_cause_that_no_run_sets_back_is_found():
    now, earlier = shares(10, 5, "tool", -0.3, separations=60)
    assert now["tool"] > 0.75 and earlier["tool"] < 0.1


@pytest.mark.simulation
@pytest.mark.parametrize(("cause", "innocent"), [("tool", "guidance"), ("guidance", "tool")])
def test_an_innocent_cause_is_not_blamed(cause, innocent):
    # 2 %, and three standard errors of 100 separations.
    assert shares(10, 5, cause, -0.3, separations=100)[0][innocent] <= 0.06


def test_an_older_definition_of_the_target_is_set_back(version):
    target = make_target(version.suite.project)
    older = version_of(target)
    target.definition = {**target.definition, "model": "m2"}
    newer = version_of(target)
    base = {"tool_version": "1.0", "target_sha256": older.sha256}
    make_compared(
        version, dict.fromkeys(KEYS, "pass"), trials=2, target=target, target_version=older, fingerprint=base
    )
    after = {"tool_version": "2.0", "target_sha256": newer.sha256}
    failing = dict.fromkeys(KEYS, "fail")
    run = make_compared(
        version,
        failing,
        trials=2,
        target=target,
        target_version=newer,
        fingerprint=after,
        options={"trials": 2},
    )
    assert separation_of(run).factors == ["target"]
    control, arm = request_separation(run.pk, by=None)
    pinned = (
        Run.objects.filter(pk__in=(control.pk, arm.pk))
        .order_by("pk")
        .values_list("target_version", flat=True)
    )
    assert list(pinned) == [newer.pk, older.pk]


@pytest.mark.parametrize("factor", FACTORS)
def test_every_factor_says_what_to_do_by_hand(version, factor):
    name = FACTORS[factor][0]
    make_compared(version, dict.fromkeys(KEYS, "pass"), fingerprint={name: "old", "names": {}})
    run = make_compared(
        version, dict.fromkeys(KEYS, "fail"), trials=1, fingerprint={name: "new", "names": {}}
    )
    ((named, why),) = separation_of(run).by_hand
    assert named == factor
    assert why.endswith(".")


def test_a_separation_is_requested_once(version):
    run = regressed(version)
    request_separation(run.pk, by=None)
    with pytest.raises(RequestError, match="are being separated already"):
        request_separation(run.pk, by=None)


def test_only_a_regression_has_causes_to_separate(version):
    with pytest.raises(RequestError, match="has not regressed"):
        request_separation(make_run(version).pk, by=None)


def test_one_cause_alone_needs_no_separation(version):
    run = regressed(version, tool_version="1.0")
    with pytest.raises(RequestError, match="two or more must have changed"):
        request_separation(run.pk, by=None)
