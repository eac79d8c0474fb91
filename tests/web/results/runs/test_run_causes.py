"""What is likely to blame, on the page of a regressed run and over REST."""

from __future__ import annotations

import pytest

from runs.models import Launch
from tests.builders import make_compared, make_guidance, make_suite
from tests.web.results.runs.pages import address, page
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

KEYS = tuple(f"task-{number}" for number in range(10))


@pytest.fixture
def regressed(project, settings):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    version = make_suite(project, KEYS, name="Ten")
    old, new = make_guidance(version.suite, "v1"), make_guidance(version.suite, "v2")
    base = {"guidance": old.sha256, "tool_version": "1.0"}
    make_compared(version, dict.fromkeys(KEYS, "pass"), trials=2, guidance=old, fingerprint=base)
    after = {"guidance": new.sha256, "tool_version": "2.0"}
    failing = dict.fromkeys(KEYS, "fail")
    return make_compared(version, failing, trials=2, guidance=new, fingerprint=after, options={"trials": 2})


def test_the_page_names_what_changed(signed_in, regressed):
    table = page(signed_in(), regressed).table("Possible causes")
    assert [row.texts[0] for row in table.rows] == ["Tool", "Guidance"]
    assert "Tool: 1.0 → 2.0" in table.row("Tool")


def test_one_press_queues_the_fresh_runs(signed_in, regressed):
    client = signed_in("runner")
    shown = page(client, regressed)
    assert (
        "Plan: 2 runs, 40 trials, cost not measured: one like this run, one with the baseline's guidance."
        in shown
    )
    assert "Install 1.0 on a worker" in shown.facts["Tool: not by a fresh run"]
    first, second = shown.all("form:has(button:-soup-contains('Separate the causes'))")
    assert first["action"] == second["action"] == address(regressed, "separate/")
    answer = parse(client.post(first["action"], follow=True))
    assert "Queued 2 runs" in answer
    launch = Launch.objects.get(preset="causes", about=regressed)
    runs = launch.runs.order_by("pk")
    assert [(run.arm, run.reference) for run in runs] == [("control", None), ("guidance", runs[0])]
    assert [run.is_experiment for run in runs] == [True, True]
    table = page(client, regressed).table("Fresh runs")
    assert [row.texts[1] for row in table.rows] == ["nothing", "guidance"]
    assert "Separate the causes" not in page(client, regressed)


def test_a_viewer_can_not_queue_them(signed_in, regressed):
    assert "Separate the causes" not in page(signed_in("viewer"), regressed)
    assert signed_in("viewer").post(address(regressed, "separate/")).status_code == 403


def test_a_run_that_did_not_regress_has_no_causes(signed_in, regressed):
    client = signed_in()
    assert "Likely to blame" not in page(client, regressed.baseline)
    answer = parse(client.post(address(regressed.baseline, "separate/"), follow=True))
    assert "has not regressed, so there are no causes to separate" in answer


def test_the_page_of_a_regression_makes_few_queries(signed_in, regressed, django_assert_max_num_queries):
    client = signed_in()
    client.post(address(regressed, "separate/"))
    client.get(address(regressed))
    with django_assert_max_num_queries(22):
        client.get(address(regressed))


@pytest.mark.parametrize("guidance", ["", "abc"])
def test_an_import_says_if_it_does_not_know_what_changed(signed_in, project, guidance):
    version = make_suite(project, ("create",))
    fingerprint = {"provider": "imported", "tool_version": "1.0", "guidance": guidance}
    for outcome in ("pass", "fail"):
        run = make_compared(version, {"create": outcome}, fingerprint=fingerprint)
    page = parse(signed_in().get(run.get_absolute_url()))
    assert ("don't say which tool and guidance version they had" in page) is not bool(guidance)
    assert ("Nothing in the fingerprint changed" in page) is bool(guidance)
