"""Suites: the list, one of them."""

from __future__ import annotations

import pytest

from runs.compare.baselines import set_baseline
from runs.models import SuiteProof
from scenarios.models import Suite
from tests.builders import (
    close,
    make_guidance,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_trial,
    make_trials,
    make_version,
)
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_the_list_shows_what_was_run(signed_in, project):
    run = make_run(make_suite(project, name="Basics"))
    make_trial(run)
    make_suite(project, name="Never run")
    table = parse(signed_in().get("/p/tools/suites/")).table("Suites")
    assert table.row("Basics").cell("Passed").text == "100 % 1/1"
    assert table.row("Never run").cell("Last run").text == "not run yet"


def test_the_list_and_the_page_read_a_suites_state_from_the_same_runs(signed_in, project):
    version = make_suite(project, ["create"], name="Basics")
    adopted = make_run(version)
    tried = make_run(version, target=make_target(project, "another"), is_experiment=True)
    for run, outcomes in ((adopted, ["fail"] * 2), (tried, ["pass"] * 4)):
        make_trials(run, {"create": outcomes})
        close(run)
    make_run(make_suite(project, name="Tried only"), is_experiment=True)
    table = parse(signed_in().get("/p/tools/suites/")).table("Suites")
    assert table.row("Basics").cell("Passed").text == "0 % 0/2"
    assert table.row("Tried only").cell("Last run").text == "experiments only"
    page = parse(signed_in().get("/p/tools/suites/basics/"))
    assert page.table("Scenarios").row("create").cell("Passed").text == "0 % 0/2"


def test_an_empty_list_says_how_to_upload_a_suite(signed_in):
    assert "No suites yet" in parse(signed_in().get("/p/tools/suites/"))


def test_the_list_is_by_name(signed_in, project):
    for name in ("Second", "First"):
        make_suite(project, name=name)
    assert parse(signed_in().get("/p/tools/suites/")).table("Suites").row_names == ["First", "Second"]


@pytest.fixture
def three_suites(project):
    make_suite(project, ("create-task",), name="Basics", tags=["smoke", "export"])
    other = make_suite(project, ("deploy",), name="Deploy", tags=["slow"]).suite
    make_suite(project, ("route",), name="Weather")
    Suite.objects.filter(pk=other.pk).update(format="agentv")


def test_the_list_can_be_narrowed(signed_in, three_suites):
    client = signed_in()
    for query, names in (
        ("q=wea", ["Weather"]),
        ("q=CREATE-t", ["Basics"]),
        ("q=slow", ["Deploy"]),
        ("format=agentv", ["Deploy"]),
        ("tag=export", ["Basics"]),
        ("tag=smoke&format=agentv", []),
        ("q=&tag=", ["Basics", "Deploy", "Weather"]),
    ):
        page = parse(client.get(f"/p/tools/suites/?{query}"))
        assert (page.table("Suites").row_names if "Suites" in page.tables else []) == names, query
        assert "All suites 3" in page.region("All suites"), query


def test_the_list_offers_its_formats_and_tags(signed_in, three_suites):
    page = parse(signed_in().get("/p/tools/suites/?q=wea"))
    formats = {"": "Any", "agentv": "AgentV", "llm_tool_test": "llm-tool-test"}
    assert list(page.field("Format").choices.items()) == list(formats.items())
    assert list(page.field("Tag").choices.values()) == ["Any", "export", "slow", "smoke"]


def test_htmx_gets_only_the_table_or_its_empty_state(signed_in, three_suites):
    headers = {"HX-Request": "true"}
    text = signed_in().get("/p/tools/suites/?q=<i>none", headers=headers).content.decode()
    assert "<html" not in text
    assert "No suite matches text “<i>none”." in parse(text)


def test_the_newest_guidance_comes_first(signed_in, project):
    suite = make_suite(project, name="Basics").suite
    for name in ("v1", "v2"):
        make_guidance(suite, name)
    table = parse(signed_in().get("/p/tools/suites/basics/")).table("Guidance")
    assert [each.text for each in table.all("tbody th a")] == ["v2", "v1"]


def test_the_guidance_of_the_last_upload_is_what_a_run_takes(signed_in, project):
    suite = make_suite(project, name="Basics").suite
    first, _ = make_guidance(suite, "v1"), make_guidance(suite, "v2")
    suite.uploads.create(suite_version=suite.versions.get(), guidance=first)
    page = parse(signed_in().get("/p/tools/suites/basics/"))
    assert page.facts["Guidance"] == "v1"
    assert "v1 in use" in page
    assert page.count("in use") == 1


def test_viewers_see_no_upload_form(signed_in):
    assert "/p/tools/upload/" not in parse(signed_in("viewer").get("/p/tools/suites/"))


def test_the_list_shows_only_this_project(signed_in):
    make_suite(make_project("other"), name="Secret")
    assert "Secret" not in parse(signed_in().get("/p/tools/suites/"))


def test_the_list_makes_as_many_queries_for_many_suites(signed_in, project, django_assert_max_num_queries):
    for _ in range(6):
        make_run(make_suite(project))
    client = signed_in()
    # Session, access, the six of the reader, the untriaged.
    with django_assert_max_num_queries(10):
        client.get("/p/tools/suites/")


@pytest.mark.parametrize(
    ("criteria", "layers"),
    [
        ({}, ""),
        ({"tool": {"binary": "git"}, "gates": [{"type": "file_exists", "path": "a"}]}, "interaction, gates"),
        ({"expect": {"toolCalled": "list"}}, "assertions"),
        (
            {"evaluators": [{"name": "grade", "type": "llm_judge"}], "judge": {"rubric": {}}},
            "evaluators, judge",
        ),
        ({"judge": {"rubric": {}, "enabled": False}}, ""),
    ],
)
def test_the_list_shows_the_layers_of_each_suite(signed_in, project, criteria, layers):
    make_suite(project, criteria=criteria)
    (row,) = parse(signed_in().get("/p/tools/suites/")).table("Suites").rows
    assert row.cell("Layers").text == (layers or "–")


@pytest.fixture
def tried(project):
    """A suite with a solid, a flaky, a broken scenario, and a new one."""
    version = make_suite(
        project, ("solid-one", "flaky-one", "broken-one", "new-one"), name="Basics", tags=["smoke"]
    )
    for number in range(4):
        run = make_run(version)
        make_trial(run, "solid-one")
        make_trial(run, "flaky-one", outcome="pass" if number % 2 else "fail")
        make_trial(run, "broken-one", outcome="fail")
    return version


@pytest.mark.parametrize(
    ("criteria", "checks", "judged"),
    [
        ({"gates": [{"type": "file_exists", "path": "out.txt"}]}, "1", "no"),
        ({"evaluators": [{"type": "llm_judge"}, {"type": "expected_messages"}]}, "2", "yes"),
        ({"evaluators": [{"type": "expected_messages"}]}, "1", "no"),
        ({"expect": {"tools_called": [], "no_tool_errors": True, "stubs": ["search"]}}, "2", "no"),
    ],
    ids=["gates", "judged answer", "answer", "assertions"],
)
def test_a_suite_counts_its_checks_in_every_format(signed_in, project, criteria, checks, judged):
    make_suite(project, ("one",), name="Basics", criteria=criteria)
    (row,) = parse(signed_in().get("/p/tools/suites/basics/")).table("Scenarios").rows
    assert (row.cell("Checks").text, row.cell("Judge").text) == (checks, judged)


def test_a_suite_classifies_its_scenarios_and_says_what_a_class_rests_on(signed_in, tried):
    client = signed_in()
    for kind in ("solid", "flaky", "broken", "new"):
        table = parse(client.get(f"/p/tools/suites/basics/?show={kind}")).table("Scenarios")
        assert table.row_names == [f"{kind}-one smoke"], kind
    page = parse(client.get("/p/tools/suites/basics/"))
    chips, table = page.region("Show"), page.table("Scenarios")
    assert chips.all("a")[0].classes == {"chip"}
    for kind in ("solid", "flaky", "broken"):
        assert chips.link(f"{kind.capitalize()} 1").classes == {"chip", f"is-{kind}"}
    for kind, rests_on in (("solid", "too few trials, n = 4"), ("broken", "88 % sure, n = 4"), ("new", "")):
        assert table.row(f"{kind}-one").cell("Class").text == f"{kind} {rests_on}".strip()


def test_a_scenario_of_two_trials_is_new(signed_in, project):
    run = make_run(make_suite(project, ("one",), name="Basics"))
    make_trial(run, "one")
    make_trial(run, "one", outcome="fail")
    text = parse(signed_in().get("/p/tools/suites/basics/"))
    assert "new" in text.badges
    assert "New 1" in text.links
    assert "not run yet" not in text


def test_a_suite_shows_versions_guidance_and_hints(signed_in, project):
    lint = {
        "file": "a.yaml",
        "line": 3,
        "where": "",
        "what": "One gate.",
        "fix": "Add one.",
        "id": "lint/x",
        "lint": True,
    }
    version = make_suite(project, name="Basics", lints=[lint])
    make_guidance(version.suite, "AGENTS.md v3")
    text = signed_in().get("/p/tools/suites/basics/").content.decode()
    for expected in ("AGENTS.md v3", "One gate.", "lint/x", version.sha256[:8]):
        assert expected in text


def test_a_suite_opens_with_the_newest_runs_target(signed_in, tried, project):
    run = make_run(tried, target=make_target(project, "codex"))
    make_trial(run, "new-one")
    page = parse(signed_in().get("/p/tools/suites/basics/?target=local"))
    assert "on local, last 20 trials with the adopted guidance" in page
    assert page.table("Scenarios").row("solid-one").cell("Class").text.startswith("solid")
    page = parse(signed_in().get("/p/tools/suites/basics/"))
    assert "on codex, last 20 trials with the adopted guidance" in page
    cells = {row.header: row.cell("Last 20 trials") for row in page.table("Scenarios").rows}
    assert [each.name for each in cells["new-one smoke"].all("[role=img]")] == ["1 passed"]
    assert cells["solid-one smoke"].text == "–"


def test_a_suites_page_makes_few_queries(signed_in, project, django_assert_max_num_queries):
    version = make_suite(project, ("create", "export"), name="Basics")
    for guidance in (make_guidance(version.suite), make_guidance(version.suite)):
        run = make_run(version, guidance=guidance)
        make_trial(run)
        close(run)
    make_version(version.suite, create={"prompt": "Another."}, export={})
    SuiteProof.objects.create(suite_version=version.suite.versions.first())
    set_baseline(run, by=None)
    client = signed_in()
    client.get("/p/tools/suites/basics/")
    with django_assert_max_num_queries(13):
        client.get("/p/tools/suites/basics/")
