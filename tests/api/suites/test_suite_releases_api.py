"""Classes of scenarios and release rules over REST."""

from __future__ import annotations

import pytest

from tests.builders import close, make_run, make_suite, make_target, make_trial


def test_classes_are_those_of_one_target(api, project):
    version = make_suite(project, ("create", "export"), name="Basics")
    for _ in range(3):
        run = make_run(version)
        make_trial(run, "create")
        close(run)
    other = make_run(version, target=make_target(project, "codex"))
    make_trial(other, "create", outcome="fail")
    found = api("viewer").get("/suites/basics/classes?target=local").json()
    assert found["target"] == "local"
    assert [(each["scenario"], each["scenario_class"]) for each in found["scenarios"]] == [
        ("create", "solid"),
        ("export", "new"),
    ]
    created, exported = found["scenarios"]
    assert (created["class_trials"], created["too_few_trials"]) == (3, True)
    assert created["class_probability"] == pytest.approx(0.593, abs=1e-3)
    assert (exported["class_probability"], exported["class_trials"]) == (None, 0)
    assert found["scenarios"][0]["pass_hat_k"] == found["scenarios"][0]["pass_at_k"] == 1.0
    assert api("viewer").get("/suites/basics/classes").json()["target"] == "codex"
    assert api("viewer").get("/suites/basics/classes?target=none").status_code == 404
    reported_run = api("viewer").get(f"/runs/{run.pk}").json()["run"]
    assert reported_run["scenarios"] == found["scenarios"]
    assert reported_run["release_rule"] is None


def test_a_release_rule_is_set_read_and_removed(api, project):
    make_suite(project, name="Basics")
    place = "/suites/basics/release-rule"
    none = {"k": None, "threshold": None}
    assert api("viewer").get(place).json() == none
    rule = {"k": 2, "threshold": 0.9}
    assert api("runner").put(place, rule).status_code == 403
    assert api("author").put(place, rule).json() == rule
    assert api("viewer").get(place).json() == rule
    assert api("author").delete(place).status_code == 204
    assert api("viewer").get(place).json() == none


@pytest.mark.parametrize("wrong", [{"k": 0, "threshold": 0.9}, {"k": 2, "threshold": 1.5}, {"k": 2}])
def test_a_wrong_release_rule_is_refused(api, project, wrong):
    make_suite(project, name="Basics")
    assert api("author").put("/suites/basics/release-rule", wrong).status_code == 422
