"""Baselines, what stands otherwise than in one, and stale results."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Baseline
from tests.builders import make_compared, make_project, make_run, make_suite
from tests.web.screen import main_of, parse

pytestmark = pytest.mark.one_database


def ran(version, *failing, **changes):
    """Return a closed run in which these scenarios failed, compared with its baseline."""
    outcomes = {key: "fail" if key in failing else "pass" for key in ("create", "export")}
    return make_compared(version, outcomes, **changes)


def page(client, run):
    return main_of(client.get(f"/p/tools/runs/{run.pk}/"))


def test_a_button_makes_a_run_the_baseline(signed_in, version):
    run = ran(version)
    client = signed_in("runner")
    assert client.post(f"/p/tools/runs/{run.pk}/baseline/").url == f"/p/tools/runs/{run.pk}/"
    assert [(each.run_id, each.branch) for each in Baseline.objects.all()] == [(run.pk, "")]
    assert page(client, run).facts["Baseline of"] == "Basics on local"


def test_a_run_of_a_branch_can_be_the_baseline_of_that_branch(signed_in, version):
    run = ran(version, branch="next")
    client = signed_in()
    assert "Mark as baseline of branch next" in page(client, run).buttons
    client.post(f"/p/tools/runs/{run.pk}/baseline/", {"branch": "next"})
    assert Baseline.objects.get().branch == "next"
    assert page(client, run).facts["Baseline of"] == "branch next"


@pytest.mark.parametrize(
    ("changes", "given", "sentence"),
    [
        ({"state": "running"}, {}, "it did not finish"),
        ({}, {"branch": "x" * 201}, "at most 200 characters"),
        ({}, {"branch": "a\x00b"}, "no NUL"),
    ],
    ids=["running", "long", "nul"],
)
def test_a_run_that_cannot_be_a_baseline_is_refused(signed_in, version, changes, given, sentence):
    run = make_run(version, **changes)
    response = signed_in().post(f"/p/tools/runs/{run.pk}/baseline/", given, follow=True)
    assert sentence in response.content.decode()
    assert not Baseline.objects.exists()


def test_a_suite_lists_its_baselines_and_lets_go_of_them(signed_in, version):
    run = ran(version)
    client = signed_in()
    client.post(f"/p/tools/runs/{run.pk}/baseline/")
    pin = Baseline.objects.get()
    suite = parse(client.get("/p/tools/suites/basics/"))
    assert f"/p/tools/baselines/{pin.pk}/unset/" in [each["action"] for each in suite.all("form")]
    link = suite.fact("Baseline").link(f"run {pin.run_id}")
    assert link.address == f"/p/tools/runs/{pin.run_id}/"
    assert client.post(f"/p/tools/baselines/{pin.pk}/unset/").url == "/p/tools/suites/basics/"
    assert "Baseline" not in parse(client.get("/p/tools/suites/basics/")).facts
    assert not Baseline.objects.exists()
    assert list(AuditEvent.objects.values_list("action", flat=True)) == ["baseline.unset", "baseline.set"]


def test_viewers_set_and_unset_nothing(signed_in, version):
    run = ran(version)
    pin = Baseline.objects.create(suite=version.suite, target=run.target, run=run)
    client = signed_in("viewer")
    assert client.post(f"/p/tools/runs/{run.pk}/baseline/").status_code == 403
    assert client.post(f"/p/tools/baselines/{pin.pk}/unset/").status_code == 403
    assert "Make this the baseline" not in page(client, run)


def test_another_projects_baseline_is_not_found(signed_in):
    other = make_suite(make_project("other"), ("create", "export"))
    run = ran(other)
    pin = Baseline.objects.create(suite=other.suite, target=run.target, run=run)
    assert signed_in().post(f"/p/tools/baselines/{pin.pk}/unset/").status_code == 404
    assert Baseline.objects.exists()


def test_a_run_shows_what_regressed_before_what_improved(signed_in, version):
    before = ran(version, "create")
    Baseline.objects.create(suite=version.suite, target=before.target, run=before)
    run = ran(version, "export", fingerprint={"tool_version": "2.0"})
    text = page(signed_in(), run)
    rows = text.table("Changed scenarios").rows
    failed = run.trial_set.get(scenario__key="export")
    assert [(row.header, row.cell("Change").text) for row in rows] == [
        ("export out.txt does not exist.", "▼ no longer passes"),
        ("create", "▲ passes now"),
    ]
    assert rows[0].link(f"trial {failed.pk}").address == f"/p/tools/trials/{failed.pk}/"
    assert "1 scenario no longer passes every trial, 1 newly passing." in text
    assert text.table("What changed").row("Tool").texts[1].endswith(" → 2.0")


STALE = {"staleness": {"stale": True, "warnings": ["Other description."]}}


def test_stale_results_are_marked_wherever_they_appear(signed_in, version):
    base = ran(version)
    run = ran(version, "export", fingerprint=STALE, warnings=["Other description."])
    pages = ("", "runs/", "suites/", "trends/", "search/?q=basics", f"compare/?runs={base.pk},{run.pk}")
    client = signed_in()
    for address in (*pages, f"runs/{run.pk}/", f"trials/{run.trial_set.first().pk}/"):
        assert 'badge is-stale">stale' in client.get(f"/p/tools/{address}").content.decode(), address


def test_results_that_fit_are_not_marked(signed_in, version):
    run = ran(version, fingerprint={"staleness": {"stale": False}})
    for address in (f"runs/{run.pk}/", "runs/"):
        assert "is-stale" not in parse(signed_in().get(f"/p/tools/{address}"))
