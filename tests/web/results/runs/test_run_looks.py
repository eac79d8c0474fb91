"""A run's page shows the looks of a run until a verdict."""

from __future__ import annotations

import pytest

from runs.models import Run
from tests.builders import make_guidance, make_suite, make_target
from tests.runs.carrying import NO_GATES
from tests.runs.looking import KEYS, carry, failing, ran, requested
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


@pytest.fixture
def version(project):
    make_target(project)
    return make_suite(project, KEYS, **NO_GATES)


def shown(client, run):
    return parse(client.get(f"/p/tools/runs/{run.pk}/"))


def test_each_look_has_its_trials_levels_and_decision(signed_in, version):
    base = ran(version, failing(), trials=12)
    run = ran(version, failing("add"), until_decided=True, max_trials=12)
    rows = shown(signed_in("viewer"), run).table("Looks").rows
    assert [row.text for row in rows] == [
        "1 60 15 40 % 0.001 0.0002 0.005 0.0008 Undecided More trials of add",
        "2 60 18 43 % < 0.0001 0.0004 0.0001 0.012 Decided",
    ]
    assert f"Compared with run {base.pk}." in shown(signed_in("viewer"), run).text


def test_an_open_run_says_when_its_first_look_is(signed_in, version):
    run = requested(version, until_decided=True, max_trials=12).runs.get()
    text = shown(signed_in("viewer"), run).region("Looks").text
    assert "up to 12 trials a scenario" in text
    assert "The first look follows the first 15 trials." in text


def test_a_run_without_a_plan_has_no_looks(signed_in, version):
    assert "at most" not in shown(signed_in("viewer"), ran(version, failing(), trials=3)).text


def test_the_reference_of_an_ab_names_the_run_with_the_looks(signed_in, version):
    guidance = [make_guidance(version.suite, name) for name in ("poor", "good")]
    old, new = requested(version, guidance=guidance, until_decided=True).runs.order_by("pk")
    carry([old, new], failing())
    text = shown(signed_in("viewer"), old).region("Looks").text
    assert f"Its trials take turns with those of run {new.pk}" in text
    reason = shown(signed_in("viewer"), Run.objects.get(pk=new.pk)).table("Looks").rows[-1].text
    assert "Stopped: little hope of a verdict" in reason
