"""What a person presses to act on a verdict: prove, filter classes."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from runs.models import ScenarioProof, SuiteProof
from scenarios.models import SuiteVersion
from tests.browser.conftest import POLL_MS
from tests.builders import close, make_run, make_suite, make_trial

KEYS = tuple(f"task-{number}" for number in range(10))


@pytest.fixture
def version(project: Any, settings: Any) -> SuiteVersion:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    return make_suite(project, KEYS, name="Basics")


def test_a_proof_appears_by_itself(as_admin: Page, live_server: Any, version: SuiteVersion) -> None:
    make_trial(make_run(version))
    as_admin.clock.install()
    as_admin.goto(f"{live_server.url}/p/tools/suites/basics/")
    proof = as_admin.get_by_role("region", name="Proof", exact=True)
    proof.get_by_label("Judges may cost, $").fill("0.5")
    proof.get_by_role("button", name="Prove").click()
    expect(proof.get_by_text("a worker is proving it")).to_be_visible()
    request = SuiteProof.objects.get()
    assert request.max_usd == 0.5
    for each in version.scenario_versions.all():
        ScenarioProof.objects.create(proof=request, scenario_version=each, seal="proved")
    SuiteProof.objects.filter(pk=request.pk).update(finished=timezone.now())
    as_admin.clock.fast_forward(POLL_MS)
    expect(proof.get_by_text("10 proved.")).to_be_visible()
    expect(as_admin.locator("#proof[hx-trigger]")).to_have_count(0)


@pytest.mark.slow
def test_a_runs_scenarios_are_filtered_by_class(
    as_admin: Page, live_server: Any, version: SuiteVersion
) -> None:
    for outcome in ("pass", "fail", "pass"):
        run = make_run(version)
        make_trial(run, KEYS[0], outcome=outcome)
        make_trial(run, KEYS[1])
        close(run)
    as_admin.goto(f"{live_server.url}/p/tools/runs/{run.pk}/")
    as_admin.get_by_role("link", name="Flaky 1").click()
    expect(as_admin.locator("#trials tbody")).to_have_count(1)
    expect(as_admin.locator("#trials tbody .badge.is-flaky")).to_be_visible()
