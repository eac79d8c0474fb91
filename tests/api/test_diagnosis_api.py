"""The diagnosis of a run over REST."""

from __future__ import annotations

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
