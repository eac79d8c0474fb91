"""Runs, trials and what came of them over REST."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Alert, Baseline, JudgingRecord, Run, Target, Worker
from runs.review.reviewing import review
from tests.api.samples import make_samples
from tests.builders import close, make_guidance, make_member, make_run, make_suite, make_target, make_trial
from tests.runs.carrying import NO_GATES, start
from tests.runs.looking import KEYS, carry, failing, ran


@pytest.fixture
def suite(project):
    make_target(project)
    return make_suite(project, ["create", "export"], name="Basics")


@pytest.fixture
def keys(project):
    return make_samples(project)


def test_it_starts_runs(api, suite):
    response = api("runner").post("/runs", {"suites": ["basics"], "targets": ["local"], "trials": 2})
    assert response.status_code == 202
    body = response.json()
    run = Run.objects.get(pk=body["runs"][0])
    assert (run.launch_id, run.state, run.trials, run.trigger) == (body["launch"], "queued", 4, "api")


def test_it_runs_the_guidance_and_version_that_are_named(api, suite):
    guidance = make_guidance(suite.suite)
    body = {"suites": [{"slug": "basics", "version": 1}], "guidance": [guidance.pk]}
    (run,) = api("runner").post("/runs", body).json()["runs"]
    assert Run.objects.get(pk=run).guidance == guidance


def test_it_stores_seed_snapshot_and_registry(api, suite):
    before = make_run(suite)
    given = {"seed": {"n": 7}, "snapshot": {"n": 8}, "registry": [{"name": "look", "description": "Looks."}]}
    body = {"suites": ["basics"], "baseline": str(before.pk), **given}
    (number,) = api("runner").post("/runs", body).json()["runs"]
    options = Run.objects.get(pk=number).options
    assert (options["seed"], options["snapshot"], options["baseline"]) == ({"n": 7}, {"n": 8}, str(before.pk))
    assert (options["registry"]["size"], list(options["registry"]["tools"])) == (1, ["look"])


@pytest.mark.parametrize(
    ("body", "id", "sentence"),
    [
        ({"suites": ["nowhere"]}, "request/invalid", "'nowhere' is neither"),
        ({"suites": ["basics"], "targets": ["lokal"]}, "request/unknown-target", "Did you mean 'local'?"),
        ({"suites": ["basics"], "only": ["nope"]}, "request/nothing-to-run", "no scenario 'nope'"),
        ({"suites": [{"slug": "basics", "version": 9}]}, "request/invalid", "no version 9"),
        ({"suites": ["basics"], "guidance": [99]}, "request/invalid", "no guidance 99"),
        ({"suites": ["basics"], "baseline": "99"}, "request/invalid", "no run '99'"),
        ({"suites": ["basics"], "registry": "look"}, "request/invalid", "no list of tools"),
    ],
    ids=["suite", "target", "scenario", "version", "guidance", "baseline", "registry"],
)
def test_it_explains_why_nothing_can_run(api, suite, body, id, sentence):
    response = api("runner").post("/runs", body)
    assert (response.status_code, response.json()["id"]) == (422, id)
    assert sentence in response.json()["detail"]
    assert not Run.objects.exists()


def test_it_gives_a_run_with_its_trials(api, keys):
    alone = api("viewer").get(f"/runs/{keys['run_id']}").json()
    assert "trials" not in alone
    whole = api("viewer").get(f"/runs/{keys['run_id']}", expand="trials").json()
    assert whole["run"] == alone["run"]
    (trial,) = whole["trials"]
    assert (trial["id"], trial["outcome"], trial["artifacts"]) == (
        keys["trial_id"],
        "fail",
        ["transcript", "workspace"],
    )
    assert trial["gates"][0]["passed"] is False


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, 3),
        ({"suite": "basics"}, 2),
        ({"state": "fail"}, 1),
        ({"tag": "nightly"}, 1),
        ({"target": "elsewhere"}, 0),
        ({"tool_version": "2.4.0"}, 1),
    ],
    ids=["all", "suite", "state", "tag", "target", "tool"],
)
def test_runs_are_filtered(api, project, suite, query, found):
    make_run(suite, tags=["nightly"], tool_version="2.4.0")
    make_trial(make_run(suite), outcome="fail")
    make_run(make_suite(project, name="More"))
    assert len(api("viewer").get("/runs", **query).json()["items"]) == found


def test_a_run_says_which_labels_it_waits_for(api, suite):
    Target.objects.update(labels=["gpu"])
    (number,) = api("runner").post("/runs", {"suites": ["basics"]}).json()["runs"]
    sentence = "Waits for a worker with the label gpu. None is running."
    assert api().get(f"/runs/{number}").json()["run"]["waits"] == sentence
    Worker.objects.create(name="able", labels=["gpu"])
    assert api().get(f"/runs/{number}").json()["run"]["waits"] is None


def test_only_an_admins_token_raises_a_launch(api, suite):
    refused = api("author").post("/runs", {"suites": ["basics"], "priority": "high"})
    assert (refused.status_code, refused.json()["id"]) == (403, "run/priority")
    launch = api().post("/runs", {"suites": ["basics"], "priority": "high"}).json()["launch"]
    assert api().get(f"/launches/{launch}").json()["priority"] == "high"
    launch = api("runner").post("/runs", {"suites": ["basics"], "priority": "low"}).json()["launch"]
    assert api().get(f"/launches/{launch}").json()["priority"] == "low"


def test_a_project_has_its_limit_and_priority(api, project):
    type(project).objects.update(most_trials=20, priority=1)
    shown = api().get(f"/projects/{project.slug}").json()
    assert (shown["most_trials"], shown["priority"]) == (20, "high")


def test_a_list_of_runs_costs_the_same_however_long(api, suite, django_assert_max_num_queries):
    first = make_run(suite)
    for _ in range(20):
        make_run(suite, baseline=first)
    viewer = api("viewer")
    viewer.get("/runs")
    with django_assert_max_num_queries(4):
        assert len(viewer.get("/runs").json()["items"]) == 21


def test_it_cancels_a_run(api, suite):
    runner = api("runner")
    (run,) = runner.post("/runs", {"suites": ["basics"]}).json()["runs"]
    assert runner.post(f"/runs/{run}/cancel").json()["state"] == "cancelled"
    again = runner.post(f"/runs/{run}/cancel")
    assert (again.status_code, again.json()["id"]) == (422, "run/over")
    assert AuditEvent.objects.filter(action="run.cancel").count() == 1


def test_it_gives_what_is_kept_of_a_trial(api, keys):
    viewer, trial = api("viewer"), f"/trials/{keys['trial_id']}"
    document = viewer.get(trial, judge="show").json()
    assert document["commands"][0]["subcommand"] == "export"
    assert {each["layer"] for each in document["scores"]} >= {"gates", "judge"}
    assert document["judgings"][0]["positives"]
    transcript = viewer.get(f"{trial}/transcript").json()
    assert (transcript["total_events"], transcript["text_complete"]) == (2, True)
    assert viewer.get(f"{trial}/transcript", start=1, limit=5).json()["events"] == transcript["events"][1:]


def test_artifacts_are_downloads_and_never_pages(api, keys):
    response = api("author").get(f"/trials/{keys['trial_id']}/artifacts/transcript")
    assert b"".join(response) == b"$ tool export\n"
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"].startswith("attachment")


def test_it_compares_runs_in_the_order_in_which_they_are_named(api, keys):
    launch = api("viewer").get("/runs").json()["items"]
    ids = [run["id"] for run in launch]
    found = api("viewer").get("/compare", runs=",".join(map(str, ids))).json()
    assert [run["id"] for run in found["runs"]] == ids
    rate = next(each for each in found["measures"] if each["measure"]["name"] == "pass")
    assert [value["mean"] for value in rate["values"]] == [0.0, 1.0]
    assert found["scenarios"] == [{"scenario": "create", "passed": [False, True]}]


def test_it_draws_a_trend(api, keys):
    found = api("viewer").get("/trends", suite="basics", measure="trial/pass").json()
    assert [point["mean"] for point in found["points"]] == [1.0, 0.0]
    assert found["points"][0]["at"].endswith("Z")


def test_a_baseline_is_set_and_unset_and_both_are_noted(api, project, keys):
    runner = api("runner")
    Baseline.objects.all().delete()
    made = runner.post("/baselines", {"run": keys["run_id"], "branch": "main"}).json()
    assert runner.get("/baselines", suite="basics").json()["items"] == [made]
    assert runner.delete(f"/baselines/{made['id']}").status_code == 204
    actions = AuditEvent.objects.filter(project=project).order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["baseline.set", "baseline.unset"]


def test_an_open_run_cannot_be_a_baseline(api, suite):
    response = api("runner").post("/baselines", {"run": make_run(suite, state="running").pk})
    assert response.status_code == 422
    assert "can't be a baseline" in response.json()["detail"]


def test_an_alert_is_assigned_to_a_member_only(api, keys, project):
    address = f"/alerts/{keys['alert_id']}"
    make_member(project, "runner", "grace")
    assert api("runner").patch(address, {"assignee": "grace"}).json()["assignee"] == "grace"
    refused = api("runner").patch(address, {"assignee": "mallory"})
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "'mallory' is not a member of this project.",
    )
    assert Alert.objects.get().assignee.username == "grace"
    assert api("runner").patch(address, {"assignee": None}).json()["assignee"] is None


def test_an_alert_is_triaged(api, keys):
    address = f"/alerts/{keys['alert_id']}"
    body = {"state": "investigating", "note": "See #12.", "link": "https://example.org/12"}
    changed = api("runner").patch(address, body).json()
    assert (changed["state"], changed["note"]) == ("investigating", "See #12.")
    assert Alert.objects.get().triaged
    assert api("runner").patch(address, {}).status_code == 422
    assert api("runner").patch(address, {"state": "gone"}).status_code == 422


def test_alerts_are_filtered(api, keys):
    client = api("viewer")
    for query, found in (
        ({"q": "basics"}, 1),
        ({"q": "elsewhere"}, 0),
        ({"assignee": "(nobody)"}, 1),
        ({"assignee": "grace"}, 0),
        ({"q": "basics", "state": "fixed"}, 0),
    ):
        assert len(client.get("/alerts", **query).json()["items"]) == found, query


def test_a_review_is_ones_last_word(api, keys, project):
    judging, by = JudgingRecord.objects.get(), make_member(project, "runner", "grace")
    for word in ("agree", "disagree"):
        review(judging, by=by, polarity="negative", position=0, word=word, comment="It read on.")
    (found,) = api("viewer").get("/reviews", suite="basics").json()["items"]
    assert (found["word"], found["note"], found["by"]) == ("disagree", "It read on.", "grace")


def test_changes_are_of_one_run_if_asked(api, keys):
    (change,) = api("viewer").get("/changes", run=keys["run_id"]).json()["items"]
    assert (change["measure"], change["verdict"]) == ("trial/pass", "regressed")


@pytest.mark.parametrize(("role", "whole"), [("author", False), ("admin", True)])
def test_a_targets_definition_is_for_admins(api, suite, role, whole):
    found = api(role).get("/targets/local").json()
    assert (found["definition"] is not None) is whole


def test_runs_are_filtered_by_several_values_author_and_days(api, project):
    version = make_suite(project)
    grace = make_member(project, "runner", "grace")
    first = make_run(version, tags=["a"], by=grace, outcome="fail")
    second = make_run(version, tags=["b"], outcome="pass")
    make_run(version, tags=["c"], outcome="error")

    def found(query: str) -> list[int]:
        return [run["id"] for run in api("viewer").get(f"/runs?{query}").json()["items"]]

    assert found("tag=a&tag=b") == [second.pk, first.pk]
    assert found("by=grace") == [first.pk]
    assert found("state=pass&state=fail&tag=b&tag=c") == [second.pk]
    assert found("until=2000-01-01") == []
    assert len(found("since=2000-01-01")) == 3
    assert api("viewer").get("/runs?since=soon").status_code == 422


def test_tags_are_changed_unless_somebody_changed_them(api, project):
    run = make_run(make_suite(project), tags=["a"])
    changed = api("runner").patch(f"/runs/{run.pk}", {"tags": ["b", "c"], "was": ["a"]})
    assert changed.json()["tags"] == ["b", "c"]
    refused = api("runner").patch(f"/runs/{run.pk}", {"tags": ["mine"], "was": ["a"]})
    assert (refused.status_code, refused.json()["id"]) == (422, "run/tags-changed")
    assert "They are now: b, c." in refused.json()["detail"]
    assert api("runner").patch(f"/runs/{run.pk}", {"tags": ["x" * 51]}).status_code == 422
    assert api("viewer").patch(f"/runs/{run.pk}", {"tags": []}).status_code == 403


def test_it_resumes_and_retries_a_run(api, suite):
    runner = api("runner")
    (run,) = runner.post("/runs", {"suites": ["basics"]}).json()["runs"]
    refused = runner.post(f"/runs/{run}/retry")
    assert (refused.status_code, refused.json()["id"]) == (422, "run/not-retryable")
    runner.post(f"/runs/{run}/cancel")
    answer = runner.post(f"/runs/{run}/resume")
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")


def test_a_trial_has_its_earlier_attempts(api, suite):
    run = make_run(suite)
    trial = make_trial(run, outcome="error", error="No answer.", error_kind="agent")
    runner = api("runner")
    assert runner.get(f"/trials/{trial.pk}").json()["attempts"] == []
    assert runner.post(f"/runs/{run.pk}/retry").status_code == 202
    (attempt,) = runner.get(f"/trials/{trial.pk}").json()["attempts"]
    assert (attempt["number"], attempt["error"], attempt["error_kind"]) == (1, "No answer.", "agent")


def test_a_run_reads_its_tools_and_values_from_addresses(api, suite):
    addresses = {"registry_url": "http://127.0.0.1:9/mcp", "snapshot_url": "https://values.example/now"}
    assert api("runner").post("/runs", {"suites": [suite.suite.slug], **addresses}).status_code == 202
    options = Run.objects.first().options
    assert (options["registry_source"], options["snapshot_source"]) == tuple(addresses.values())
    refused = api("runner").post("/runs", {"suites": [suite.suite.slug], "registry_url": "sh -c id"})
    assert refused.status_code == 422


def test_it_starts_a_run_until_a_verdict_and_lists_its_looks(api, project):
    version = make_suite(project, KEYS, name="Five", **NO_GATES)
    make_target(project)
    ran(version, failing(), trials=12)
    body = {"suites": ["five"], "until_decided": True, "max_trials": 12}
    run = Run.objects.get(pk=api("runner").post("/runs", body).json()["runs"][0])
    start(run)
    carry([run], failing("add"))
    found = api().get(f"/runs/{run.pk}").json()["run"]
    assert (found["verdict"], found["trials"]) == ("regressed", 15)
    first, last = found["looks"]
    assert (first["decision"], first["undecided"], first["trials"]) == ("go_on", ["add"], [60, 15])
    assert last["decision"] == "decided"
    assert last["p"] < last["level"]


def test_it_refuses_a_limit_without_looks(api, suite):
    response = api("runner").post("/runs", {"suites": ["basics"], "max_trials": 5})
    assert response.status_code == 422
    assert "until_decided" in response.json()["detail"]


def test_it_lists_what_ran_again_and_can_leave_it_out(api, project):
    version = make_suite(project, KEYS, name="Five", **NO_GATES)
    make_target(project, provider="cli", definition={"name": "local", "provider": "cli"})
    ran(version, failing(), trials=6)
    body = {"suites": ["five"], "trials": 3}
    run, plain = (
        Run.objects.get(pk=api("runner").post("/runs", {**body, **more}).json()["runs"][0])
        for more in ({}, {"retest": False})
    )
    for each in (run, plain):
        start(each)
        carry([each], failing("add"))
    (retest,) = api().get(f"/runs/{run.pk}").json()["run"]["retests"]
    assert (retest["key"], retest["outcome"], retest["fresh"]) == ("add", "named", [0, 6])
    scenarios = {each["scenario"]: each for each in api().get(f"/runs/{run.pk}").json()["run"]["scenarios"]}
    assert scenarios["add"]["retested"] == {"passed": 0, "trials": 6}
    assert retest["sentence"] == "failed tonight, and 6 of 6 again"
    rows = api().get(f"/runs/{run.pk}/trials?scenario=add").json()["items"]
    assert sum(row["retest"] for row in rows) == 6
    assert api().get(f"/runs/{plain.pk}").json()["run"]["retests"] == []


def test_a_runs_scenarios_have_the_classes_of_its_target(api, project):
    version = make_suite(project, ("create", "export"), name="Basics")
    first = make_run(version)
    make_trial(first, "create")
    close(first)
    other = make_run(version, target=make_target(project, "codex"))
    make_trial(other, "create", outcome="fail")
    close(other)
    for _ in range(2):
        run = make_run(version, target=first.target)
        make_trial(run, "create")
        close(run)
    created, exported = api("viewer").get(f"/runs/{run.pk}").json()["run"]["scenarios"]
    assert (created["scenario_class"], exported["scenario_class"]) == ("solid", "new")
    assert (created["class_trials"], created["too_few_trials"]) == (3, True)
    assert created["class_probability"] == pytest.approx(0.593, abs=1e-3)
    assert created["pass_hat_k"] == created["pass_at_k"] == 1.0
