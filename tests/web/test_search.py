"""What the search box finds."""

from __future__ import annotations

import pytest

from tests.builders import make_project, make_run, make_suite
from tests.web.html import parse

ADDRESS = "/p/tools/search/"


@pytest.fixture
def run(project):
    version = make_suite(project, ("create", "export-json"), name="Basics", prompt="Write the ledger.")
    return make_run(version, tags=["nightly"], tool_version="taskmgr 2.4.0")


def found(client, text):
    return client.get(ADDRESS, {"q": text}).context["results"]


@pytest.mark.parametrize("text", ["nightly", "2.4.0", "{pk}", "basics"])
def test_it_finds_runs(signed_in, run, text):
    assert list(found(signed_in("viewer"), text.format(pk=run.pk)).runs) == [run]


def test_it_finds_suites_by_name(signed_in, run):
    assert [suite.name for suite in found(signed_in(), "asic").suites] == ["Basics"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [("json", ["export-json"]), ("LEDGER", ["create", "export-json"])],
    ids=["key", "prompt"],
)
def test_it_finds_scenarios(signed_in, run, text, keys):
    assert [scenario.key for scenario in found(signed_in(), text).scenarios] == keys


@pytest.mark.parametrize("text", ['say "hello', "C:\\temp", "it.\nThen", "größe"])
def test_it_finds_prompts_as_they_are_written(signed_in, project, text):
    prompt = 'Please say "hello" from C:\\temp in größe; do it.\nThen stop.'
    make_suite(project, ("quoted",), name="Quoted", prompt=prompt)
    assert [scenario.key for scenario in found(signed_in(), text).scenarios] == ["quoted"]


def test_it_finds_no_prompt_by_the_quotes_around_it(signed_in, run):
    assert found(signed_in(), '"Write').scenarios == []


def test_it_finds_nothing_of_another_project(signed_in, run):
    other = make_project("other")
    make_run(make_suite(other, ("create",), name="Basics"), tags=["nightly"])
    seen = found(signed_in(), "basics")
    assert {each.project_id for each in seen.runs} == {run.project_id}
    assert {each.project_id for each in seen.suites} == {run.project_id}


def test_it_shows_that_nothing_matches(signed_in, run):
    page = parse(signed_in().get(ADDRESS, {"q": "<b>zebra</b>"}))
    assert "No run, suite or scenario contains “<b>zebra</b>”." in page


def test_it_asks_what_to_look_for(signed_in):
    assert "Search this project" in parse(signed_in().get(ADDRESS))


def test_the_box_of_every_page_leads_here(signed_in):
    assert f'action="{ADDRESS}"' in signed_in().get("/p/tools/suites/").content.decode()


def test_it_makes_few_queries(signed_in, run, django_assert_max_num_queries):
    client = signed_in()
    # Session, user, access, four of the reader, the menu's projects, the untriaged.
    with django_assert_max_num_queries(9):
        client.get(ADDRESS, {"q": "basics"})
