"""Causes of a regression over REST."""

from __future__ import annotations

from tests.builders import make_compared, make_guidance, make_suite

KEYS = tuple(f"task-{number}" for number in range(10))


def test_causes_are_read_and_separated(api, project, settings):
    settings.CELERY_APP = "tests.api.test_grade_api.nobody"
    version = make_suite(project, KEYS)
    old, new = make_guidance(version.suite, "v1"), make_guidance(version.suite, "v2")
    base = {"guidance": old.sha256, "tool_version": "1.0"}
    before = make_compared(version, dict.fromkeys(KEYS, "pass"), trials=2, guidance=old, fingerprint=base)
    assert api("runner").post(f"/runs/{before.pk}/causes").status_code == 422
    after = {"guidance": new.sha256, "tool_version": "2.0"}
    run = make_compared(version, dict.fromkeys(KEYS, "fail"), trials=2, guidance=new, fingerprint=after)
    found = api("viewer").get(f"/runs/{run.pk}/causes").json()
    assert [each["factor"] for each in found["changed"]] == ["tool", "guidance"]
    assert (found["baseline"], found["can_set_back"], found["fresh"]) == (before.pk, ["guidance"], [])
    assert "Install 1.0 on a worker and run the suite again" in found["by_hand"]["tool"]
    answer = api("runner").post(f"/runs/{run.pk}/causes")
    assert answer.status_code == 202
    assert [each["factor"] for each in answer.json()["fresh"]] == [None, "guidance"]
    assert api("runner").post(f"/runs/{run.pk}/causes").status_code == 422
