"""Guidance over REST: compared and renamed."""

from __future__ import annotations

import pytest

from tests.builders import close, make_guidance, make_run, make_suite, make_trial


@pytest.fixture
def pair(project):
    version = make_suite(project, name="Basics")
    guidance = [make_guidance(version.suite, name) for name in ("poor", "good")]
    for each, outcome in zip(guidance, ("fail", "pass"), strict=True):
        run = make_run(version, guidance=each)
        for _ in range(5):
            make_trial(run, "create", outcome=outcome)
        close(run)
    return guidance


def test_two_versions_are_compared(api, pair):
    document = api().get(f"/guidance/{pair[0].pk}/against/{pair[1].pk}").json()
    assert (document["verdict"], document["interleaved"]) == ("improved", False)
    assert document["setting"] == {"target": "local", "model": "", "tool_version": ""}
    assert document["scenarios"][0] | {"verdict": ""} == {
        "scenario": "create",
        "before": 0.0,
        "after": 1.0,
        "verdict": "",
    }


def test_a_setting_without_runs_has_no_measures(api, pair):
    document = api().get(f"/guidance/{pair[0].pk}/against/{pair[1].pk}?target=other").json()
    assert (document["verdict"], document["measures"]) == (None, [])


def test_one_version_is_not_compared_with_itself(api, pair):
    refused = api().get(f"/guidance/{pair[0].pk}/against/{pair[0].pk}")
    assert (refused.status_code, refused.json()["id"]) == (422, "guidance/compare")


def test_a_stale_name_is_refused(api, pair):
    address = f"/guidance/{pair[0].pk}"
    assert api("author").patch(address, {"name": "first", "was": "poor"}).json()["name"] == "first"
    refused = api("author").patch(address, {"name": "second", "was": "poor"})
    assert (refused.status_code, refused.json()["id"]) == (422, "guidance/name")
