"""Causes of a regression, the diagnosis of a run and the usage of a tool over REST."""

from __future__ import annotations

from runs.models import FlagConfusion, SubcommandMeasure
from tests.builders import close, make_compared, make_guidance, make_run, make_suite, make_trial, used

KEYS = tuple(f"task-{number}" for number in range(10))


def test_causes_are_read_and_separated(api, project, settings):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
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
    fresh = answer.json()["fresh"]
    assert [each["factor"] for each in fresh] == [None, "guidance"]
    assert [each["verdict_against_baseline"] for each in fresh] == [None, None]
    assert api("runner").post(f"/runs/{run.pk}/causes").status_code == 422


def test_a_diagnosis_is_read_and_reviewed(api, project):
    run = make_run(make_suite(project))
    trial = make_trial(run, detail=used({"name": "add", "calls": 4, "errors": 3}))
    close(run)
    found = api("viewer").get(f"/runs/{run.pk}/diagnosis").json()
    (finding,) = found["findings"]
    assert (found["thresholds"]["error_rate"], found["history"], found["edited"]) == (0.25, 0, [])
    assert (finding["pattern"], finding["trials"]) == ("errors-without-help", [trial.pk])
    assert finding["commands"] == [{"name": "add", "hits": 3, "calls": 4, "trials": 1, "scenarios": 1}]
    assert finding["precision"] == {"right": 0, "n": 0, "low": None, "high": None, "own": None}
    place = f"/runs/{run.pk}/diagnosis/errors-without-help"
    (finding,) = api("runner").put(place, {"right": False}).json()["findings"]
    assert (finding["precision"]["right"], finding["precision"]["n"], finding["precision"]["own"]) == (
        0,
        1,
        False,
    )
    (finding,) = api("runner").put(place, {"right": None}).json()["findings"]
    assert finding["precision"]["n"] == 0
    assert api("runner").put(place, {}).status_code == 422


def test_usage_gives_subcommands_and_confusions(api, project):
    run = make_run(make_suite(project), tool_version="2.0")
    SubcommandMeasure.objects.create(
        run=run, subcommand="export", calls=10, errors=4, helps=3, helps_before=1
    )
    FlagConfusion.objects.create(
        run=run, subcommand="export", kind="invented", typed="--all", calls=1, trials=1
    )
    found = api("viewer").get("/usage", tool_version="2.0").json()
    (subcommand,), (confusion,) = found["subcommands"], found["confusions"]
    assert (subcommand["error_rate"], subcommand["helps_before"], subcommand["helps_after"]) == (0.4, 1, 2)
    assert subcommand["error_rate_change"] is None
    assert (confusion["kind"], confusion["typed"], confusion["newest_run"]) == ("invented", "--all", run.pk)
    assert api("viewer").get("/usage", tool_version="3.0").json()["runs"] == 0
