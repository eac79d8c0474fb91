"""Seals on the pages of suites and runs."""

from __future__ import annotations

import pytest
from django.utils import timezone

from runs.models import ScenarioProof, SuiteProof
from scenarios.models import SuiteVersion
from tests.builders import make_run, make_suite, make_trial
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def seal(version: SuiteVersion, **seals: str) -> SuiteProof:
    proof = SuiteProof.objects.create(suite_version=version, finished=timezone.now())
    for each in version.scenario_versions.select_related("scenario"):
        if each.scenario.key in seals:
            ScenarioProof.objects.create(
                proof=proof, scenario_version=each, seal=seals[each.scenario.key], held=["file_exists: a"]
            )
    return proof


def test_the_suites_page_shows_each_seal_and_their_sum(signed_in, project):
    version = make_suite(project, ("create", "export"))
    seal(version, create="passes_without_agent")
    page = parse(signed_in().get(version.suite.get_absolute_url()))
    rows = page.table("Scenarios")
    assert rows.row("create").cell("Seal").text.startswith("passes without an agent")
    assert "Holds before an agent starts: file_exists: a" in rows.row("create").cell("Seal").text
    assert rows.row("export").cell("Seal").text.startswith("unproved")
    assert "1 unproved, 1 passing without an agent" in page.text


def test_the_button_requests_a_proof_once(signed_in, project, settings):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    version = make_suite(project)
    address = f"{version.suite.get_absolute_url()}prove/"
    client = signed_in()
    for _ in range(2):
        assert client.post(address).status_code == 302
    assert SuiteProof.objects.get().suite_version == version
    assert "a worker is proving it" in parse(client.get(version.suite.get_absolute_url())).text


def test_a_running_proofs_panel_polls_and_stops_by_itself(signed_in, project):
    version = make_suite(project, ("create",))
    proof = SuiteProof.objects.create(suite_version=version)
    client, address = signed_in(), version.suite.get_absolute_url()
    asked = {"HX-Request": "true", "HX-Target": "proof"}
    running = client.get(address, headers=asked)
    assert (running.status_code, b'hx-trigger="every 2s"' in running.content) == (200, True)
    seal(version, create="proved")
    proof.delete()
    ended = client.get(address, headers=asked)
    assert (ended.status_code, ended["HX-Refresh"]) == (286, "true")
    assert b"every 2s" not in ended.content
    assert "1 proved." in parse(ended)


@pytest.mark.parametrize(("given", "stored"), [("", None), ("0.5", 0.5)])
def test_judges_are_asked_only_within_a_budget(signed_in, project, settings, given, stored):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    version = make_suite(project)
    signed_in().post(f"{version.suite.get_absolute_url()}prove/", {"max_usd": given})
    assert SuiteProof.objects.get().max_usd == stored


def test_a_wrong_budget_is_refused_with_a_sentence(signed_in, project):
    version = make_suite(project)
    answer = signed_in().post(f"{version.suite.get_absolute_url()}prove/", {"max_usd": "-1"}, follow=True)
    assert "Judges' budget: enter dollars from 0.01 to 10,000, or nothing." in parse(answer)
    assert not SuiteProof.objects.exists()


@pytest.mark.parametrize(("found", "warned"), [("passes_without_agent", True), ("proved", False)])
def test_a_run_warns_of_what_passes_without_an_agent(signed_in, project, found, warned):
    version = make_suite(project, ("create",))
    run = make_run(version)
    make_trial(run)
    seal(version, create=found)
    text = parse(signed_in().get(f"/p/tools/runs/{run.pk}/")).text
    assert ("create passes without an agent" in text) is warned
