"""The diagnosis of a run and the usage of a tool over REST."""

from __future__ import annotations

from runs.models import FlagConfusion, SubcommandMeasure
from tests.builders import close, make_run, make_suite, make_trial, used


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
