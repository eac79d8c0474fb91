"""Asking for runs: what is started."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evalhub.teams.models import AuditEvent, Priority
from runs.models import Launch, Run, Trial
from scenarios.models import Guidance, SuiteVersion, Upload
from tests.builders import make_guidance, make_project, make_run, make_suite, make_target
from tests.web.launch.form import ADDRESS, FETCHED, given, plan_of
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_starting_makes_the_trials(signed_in, version):
    response = signed_in("runner").post(ADDRESS, given(start="yes", run_tags="nightly, release"))
    run = Run.objects.get()
    assert response.url == f"/p/tools/runs/{run.pk}/"
    assert (run.trials, run.tags, run.trigger, run.state) == (6, ["nightly", "release"], "web", "queued")


def test_several_models_make_several_runs(signed_in, version):
    signed_in().post(ADDRESS, given(start="yes", models="a, b"))
    assert sorted(Run.objects.values_list("model", flat=True)) == ["a", "b"]


def test_several_targets_lead_to_the_page_that_compares_them(signed_in, version):
    names = ("local", "codex", "gemini")
    for name in names[1:]:
        make_target(version.suite.project, name)
    client = signed_in("runner")
    response = client.post(ADDRESS, given(start="yes", targets=[*names]), follow=True)
    assert parse(response).headings[0] == f"3 agent programs on {version.suite.name}"
    assert [run.target.name for run in Launch.objects.get().runs.order_by("pk")] == [*names]


def test_the_judge_can_be_left_out(signed_in, version):
    data = given(start="yes")
    del data["judge"]
    signed_in().post(ADDRESS, data)
    assert Run.objects.get().options["judge"] is False


def test_a_baseline_and_a_time_limit_can_be_chosen(signed_in, version):
    before = make_run(version)
    signed_in("runner").post(ADDRESS, given(start="yes", baseline=f" {before.pk} ", timeout_seconds="90.5"))
    options = Run.objects.latest("pk").options
    assert (options["baseline"], options["timeout_seconds"]) == (str(before.pk), 90.5)


def test_without_a_choice_the_baseline_is_what_is_pinned(signed_in, version):
    signed_in().post(ADDRESS, given(start="yes"))
    options = Run.objects.get().options
    assert (options["baseline"], options["timeout_seconds"]) == ("", None)


def test_another_projects_run_is_not_a_baseline(signed_in, version):
    stranger = make_run(make_suite(make_project("other")))
    page = parse(signed_in().post(ADDRESS, given(start="yes", baseline=str(stranger.pk))))
    assert page.field("Other baseline").hint.startswith("There is no run")
    assert Run.objects.count() == 1


def test_guidance_can_be_chosen(signed_in, version):
    guidance = make_guidance(version.suite)
    signed_in().post(ADDRESS, given(start="yes", guidance=str(guidance.pk)))
    assert Run.objects.get().guidance == guidance


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"trials": "1O"}, "Enter a whole number, such as 3."),
        ({"trials": "0"}, "Enter 1 or more."),
        ({"trials": "1001"}, "Enter 1000 or less."),
        ({"only": "nothing"}, "has no scenario"),
        ({"tags": "nowhere"}, "No scenario of Basics matches"),
        ({"targets": ["gone"]}, "There is no target “gone” that can run this suite."),
        ({"suite": "gone"}, "Select a valid choice"),
        ({"timeout_seconds": "soon"}, "Enter a number of seconds, such as 120."),
        ({"timeout_seconds": "nan"}, "Enter a number of seconds, such as 120."),
        ({"timeout_seconds": "0"}, "Enter 0.0001 or more."),
        ({"timeout_seconds": "86401"}, "Enter 86400 or less."),
        ({"baseline": "9" * 30}, "For the baseline, give a run number or last-pass."),
        ({"baseline": "<b>last</b>"}, "There is no run '<b>last</b>'."),
        ({"run_tags": "x" * 201}, "String should have at most 200 characters."),
        ({"models": ",".join(f"m{n}" for n in range(51))}, "List should have at most 50 items"),
    ],
    ids=[
        "no number",
        "too few",
        "too many",
        "unknown key",
        "unknown tag",
        "unknown target",
        "unknown suite",
        "no time",
        "no time that ends",
        "too short",
        "too long",
        "unknown run",
        "no baseline",
        "too long a tag",
        "too many models",
    ],
)
def test_a_mistake_is_reported_and_starts_nothing(signed_in, version, changes, sentence):
    response = signed_in().post(ADDRESS, given(start="yes", **changes))
    assert response.status_code == 422
    assert sentence in parse(response)
    assert not Run.objects.exists()


def test_a_mistake_is_shown_at_its_field(signed_in, version):
    field = parse(signed_in().post(ADDRESS, given(start="yes", trials="x"))).field("Trials each")
    assert field.hint == "Enter a whole number, such as 3."
    assert field["aria-invalid"] == "true"


def test_guidance_of_another_suite_is_refused(signed_in, version, project):
    other = make_guidance(make_suite(project, name="Second").suite)
    text = parse(signed_in().post(ADDRESS, given(start="yes", guidance=str(other.pk))))
    assert "This guidance belongs to Second." in text


@pytest.mark.parametrize("field", ["suite", "targets", "guidance"])
def test_nothing_of_another_project_can_be_run(signed_in, version, field):
    other = make_project("other")
    foreign = make_suite(other, name="Foreign")
    make_target(other, "foreign")
    changes = {"suite": "foreign", "targets": ["foreign"], "guidance": str(make_guidance(foreign.suite).pk)}
    assert signed_in().post(ADDRESS, given(start="yes", **{field: changes[field]})).status_code == 422
    assert not Run.objects.exists()


def test_a_fetched_plan_shows_errors_beside_their_fields(signed_in, version):
    response = signed_in().post(ADDRESS, given(trials="0", tier="x", planned_suite="basics"), headers=FETCHED)
    assert response.status_code == 200
    notes = {each["id"]: each.text for each in parse(response).all("small[hx-swap-oob=true]")}
    assert notes["trials-note"] == "Enter 1 or more."
    assert notes["tier-note"] == "Enter a whole number, such as 3."
    assert notes["models-note"] == "Default: the target's own."


@pytest.mark.parametrize(("planned", "starts"), [("6", True), ("8", True), ("4", False), ("", False)])
def test_a_start_is_refused_if_the_plan_grew(signed_in, version, planned, starts):
    response = signed_in().post(ADDRESS, given(start="yes", planned=planned))
    assert response.status_code == (302 if starts else 409)
    assert Trial.objects.count() == (6 if starts else 0)
    if not starts:
        assert "the plan grew to 6 trials" in parse(response)


def test_the_last_upload_is_what_runs(signed_in, version):
    newer = make_suite(version.suite.project, ("z",), name="Second")
    newer.suite.uploads.update(suite=version.suite)
    newer.suite, newer.number = version.suite, 2
    newer.save()
    version.suite.uploads.create(suite_version=version)
    signed_in().post(ADDRESS, given(start="yes"))
    assert Run.objects.get().suite_version == version


def test_what_is_named_twice_runs_once(signed_in, version):
    signed_in().post(ADDRESS, given(start="yes", targets=["local", "local"], models="a, a"))
    assert Run.objects.get().trials == 6


def test_without_suites_it_says_how_to_upload_one(signed_in):
    assert "No suites yet" in parse(signed_in().get(ADDRESS))


def test_an_admin_raises_a_launch(signed_in, version):
    signed_in().post(ADDRESS, given(start="yes", priority="high"))
    launch = Launch.objects.get()
    assert launch.priority == Priority.HIGH
    assert "Priority high" in parse(signed_in().get(launch.runs.get().get_absolute_url()))


def test_others_may_lower_a_launch_but_not_raise_it(signed_in, version):
    client = signed_in("author")
    refused = client.post(ADDRESS, given(start="yes", priority="high"))
    assert refused.status_code == 422
    assert "Only an admin of the project can raise a launch above normal." in parse(refused)
    assert not Launch.objects.exists()
    client.post(ADDRESS, given(start="yes", priority="low"))
    assert Launch.objects.get().priority == Priority.LOW


def test_the_command_has_the_priority(signed_in, version):
    assert "--priority" not in plan_of(signed_in())
    assert "--priority low" in plan_of(signed_in(), priority="low")


def document(name: str, content: bytes = b"new advice\n") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


@pytest.fixture
def own_guidance(version: SuiteVersion) -> SuiteVersion:
    """Return a suite with two guidance documents."""
    documents = [{"path": path, "content": "old advice\n"} for path in ("AGENTS.md", "docs/CLAUDE.md")]
    version.guidance = make_guidance(version.suite)
    version.guidance.files = documents
    version.guidance.save()
    version.save()
    Upload.objects.filter(suite=version.suite).update(guidance=version.guidance)
    return version


def contents(run: Run) -> dict[str, str]:
    return {each["path"]: each["content"] for each in run.guidance.files}


def test_a_document_takes_the_place_of_the_suites_own(signed_in, own_guidance):
    own_guidance.guidance.files = own_guidance.guidance.files[:1]
    own_guidance.guidance.save()
    shown = plan_of(signed_in("author"), document=document("good.md"))
    assert "--guidance good.md" in shown
    assert Guidance.objects.count() == 1, "a plan stores nothing"
    signed_in("author").post(ADDRESS, given(start="yes", document=document("good.md")))
    run = Run.objects.get()
    assert contents(run) == {"AGENTS.md": "new advice\n"}
    assert str(run.guidance) == "good.md over AGENTS.md"
    assert AuditEvent.objects.filter(action="guidance.create").count() == 1


def test_an_ambiguous_document_is_an_error_beside_its_field(signed_in, own_guidance):
    refused = signed_in().post(ADDRESS, given(start="yes", document=document("good.md")))
    assert refused.status_code == 422
    sentence = "'good.md' could take the place of several documents: AGENTS.md, docs/CLAUDE.md."
    assert sentence in parse(refused)
    assert not Run.objects.exists()


def test_a_document_with_a_path_leaves_the_others(signed_in, own_guidance):
    fields = {"document": document("good.md"), "document_path": "docs/CLAUDE.md"}
    assert "--guidance docs/CLAUDE.md=good.md" in plan_of(signed_in(), **fields)
    fields["document"] = document("good.md")
    signed_in().post(ADDRESS, given(start="yes", **fields))
    assert contents(Run.objects.get()) == {"AGENTS.md": "old advice\n", "docs/CLAUDE.md": "new advice\n"}


def test_a_document_outside_the_workspace_is_refused(signed_in, own_guidance):
    fields = {"document": document("good.md"), "document_path": "../AGENTS.md"}
    refused = signed_in().post(ADDRESS, given(start="yes", **fields))
    assert refused.status_code == 422
    assert "'../AGENTS.md' is outside the workspace." in parse(refused)


def test_a_document_and_a_chosen_version_are_two_runs(signed_in, own_guidance):
    fields = {"document": document("AGENTS.md"), "guidance": str(own_guidance.guidance.pk)}
    signed_in().post(ADDRESS, given(start="yes", **fields))
    assert [contents(run)["AGENTS.md"] for run in Run.objects.order_by("pk")] == [
        "old advice\n",
        "new advice\n",
    ]


def test_a_runner_adds_no_guidance(signed_in, version):
    client = signed_in("runner")
    assert "Guidance document" not in parse(client.get(ADDRESS))
    refused = client.post(ADDRESS, given(start="yes", document=document("AGENTS.md")))
    assert refused.status_code == 403
    assert not Run.objects.exists()


EVERYTHING = {
    "judge_model": "local",
    "threshold": "0.8",
    "tool_version": "2.1",
    "branch": "main",
    "commit": "abc123",
    "seed": '{"id": 7}',
    "snapshot": "[1]",
    "registry": '[{"name": "search", "inputSchema": {}}]',
    "descriptions": "tools:\n  put: Add a note.\n",
    "experiment": "on",
    "max_usd": "2.5",
}


def test_the_page_takes_what_the_command_line_takes(signed_in, version):
    client = signed_in()
    baseline = make_run(version, passed=1)
    form = given(trials="1", baseline_run=str(baseline.pk), **EVERYTHING)
    plan = parse(client.post(ADDRESS, form, headers=FETCHED))
    (fold,) = [each for each in plan.all("details") if each.all("summary")[0].text == "As a command"]
    command = fold.all("pre")[0].text
    for words in ("--judge-model local", "--threshold 0.8", "--tool-version 2.1", "--branch main"):
        assert words in command
    for words in ("--commit abc123", "--snapshot snapshot.json", "--experiment"):
        assert words in command
    assert "--tool-descriptions descriptions.yaml" in command
    assert client.post(ADDRESS, form | {"start": "yes"}).status_code == 302
    run = Run.objects.latest("pk")
    assert (run.tool_version, run.branch, run.commit, run.is_experiment) == ("2.1", "main", "abc123", True)
    options = run.options
    assert (options["judge_model"], options["threshold"]) == ("local", 0.8)
    assert (options["seed"], options["snapshot"], options["baseline"]) == ({"id": 7}, [1], str(baseline.pk))
    assert options["registry"]["tools"]
    assert options["descriptions"]["tools"]["put"]["description"] == "Add a note."


def test_a_rerun_keeps_the_tool_descriptions(signed_in, version):
    client = signed_in()
    client.post(ADDRESS, given(start="yes", descriptions="tools: {put: Add a note.}"))
    run = Run.objects.get()
    link = parse(client.get(run.get_absolute_url())).link("Run again…")["href"]
    field = parse(client.get(link)).field("Tool descriptions")
    assert field.value == "tools:\n  put:\n    description: Add a note.\n"
    assert client.get(f"{ADDRESS}?descriptions_of=x").status_code == 200


@pytest.mark.parametrize(
    ("name", "label", "text", "sentence"),
    [
        ("snapshot", "Snapshot", "{", "This is not JSON at line 1."),
        ("seed", "Seed values", '"\\u0000"', "It contains a NUL"),
        ("registry", "Tool registry", '{"a": 1}', "registry"),
        ("descriptions", "Tool descriptions", "tools:\n  put: 7", "Line 2"),
        ("threshold", "Threshold", "2", "Enter 1 or less."),
        ("baseline_run", "Baseline", "12345", "can't be the baseline"),
    ],
)
def test_a_mistake_under_more_is_shown_there(signed_in, version, name, label, text, sentence):
    response = signed_in().post(ADDRESS, given(start="yes", **{name: text}))
    assert response.status_code == 422
    field = parse(response).field(label)
    assert sentence in field.hint and not field.is_folded
    assert not Run.objects.exists()


def test_the_form_proposes_the_trials_that_a_suite_asks_for(signed_in, version):
    assert parse(signed_in().get(ADDRESS)).field("Trials each").value == "1"
    version.config = {**version.config, "trials": 3}
    version.save()
    assert parse(signed_in().get(ADDRESS)).field("Trials each").value == "3"
