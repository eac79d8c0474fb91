"""What the search box finds."""

from __future__ import annotations

import pytest

from evaluators.model import Event, Transcript
from runs.db import statements
from runs.models import SearchEntry
from runs.results.search.trial_search import facets_of, make_entry
from scenarios.models import SESSIONS, Suite
from tests.builders import make_project, make_run, make_suite, make_trial
from tests.web.screen import parse

ADDRESS = "/p/tools/search/"


@pytest.fixture
def run(project):
    version = make_suite(project, ("create", "export-json"), name="Basics", prompt="Write the ledger.")
    return make_run(version, tags=["nightly"], tool_version="taskmgr 2.4.0")


def found(client, text):
    """Return what the search page finds: the names of each kind in its order."""
    page = parse(client.get(ADDRESS, {"q": text}))
    sections = [each for each in page.all("section[aria-labelledby]") if each.name != "Runs"]
    names = {each.name: [item.all("a")[0].text for item in each.all("li")] for each in sections}
    return names | ({"Runs": page.table("Runs").row_names} if "Runs" in page.tables else {})


@pytest.mark.parametrize("text", ["nightly", "2.4.0", "basics"])
def test_it_finds_runs(signed_in, run, text):
    assert found(signed_in("viewer"), text)["Runs"] == [str(run.pk)]


def test_a_runs_badge_is_its_answer_and_sessions_have_none(signed_in, run):
    def badges():
        return [each.text for each in parse(signed_in().get(ADDRESS, {"q": "nightly"})).all(".badge")]

    assert badges() == ["new line"]
    Suite.objects.update(format=SESSIONS)
    assert badges() == ["sessions"]


def test_it_finds_suites_by_name(signed_in, run):
    assert found(signed_in(), "asic")["Suites"] == ["Basics"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [("json", ["export-json"]), ("LEDGER", ["create", "export-json"])],
    ids=["key", "prompt"],
)
def test_it_finds_scenarios(signed_in, run, text, keys):
    assert found(signed_in(), text)["Scenarios"] == keys


@pytest.mark.parametrize("text", ['say "hello', "C:\\temp", "it.\nThen", "größe"])
def test_it_finds_prompts_as_they_are_written(signed_in, project, text):
    prompt = 'Please say "hello" from C:\\temp in größe; do it.\nThen stop.'
    make_suite(project, ("quoted",), name="Quoted", prompt=prompt)
    assert found(signed_in(), text) == {"Scenarios": ["quoted"]}


def test_it_finds_no_prompt_by_the_quotes_around_it(signed_in, run):
    assert found(signed_in(), '"Write') == {}


def test_it_finds_nothing_of_another_project(signed_in, run):
    other = make_project("other")
    make_run(make_suite(other, ("create",), name="Basics"), tags=["nightly"])
    assert found(signed_in(), "basics") == {"Suites": ["Basics"], "Runs": [str(run.pk)]}


def test_it_shows_that_nothing_matches(signed_in, run):
    page = parse(signed_in().get(ADDRESS, {"q": "<b>zebra</b>"}))
    assert "No trial, run, suite or scenario contains “<b>zebra</b>”." in page


def test_it_asks_what_to_look_for(signed_in):
    assert "Search this project" in parse(signed_in().get(ADDRESS))


def test_the_box_of_every_page_leads_here(signed_in):
    assert f'action="{ADDRESS}"' in signed_in().get("/p/tools/suites/").content.decode()


def test_it_makes_few_queries(signed_in, run, django_assert_max_num_queries):
    client = signed_in()
    # Session, user, access, six of the results, the filters, the menu's projects, the untriaged.
    with django_assert_max_num_queries(12):
        client.get(ADDRESS, {"q": "basics"})


def stored(run, outcome="fail", **texts):
    """Return a trial of a run with its search entry."""
    trial = make_trial(run, "create", outcome=outcome)
    events = tuple(Event("tool_call", command=line) for line in texts.pop("commands", ()))
    facets = facets_of(run.pk, outcome)
    row = make_entry(
        trial.pk, facets, transcript=Transcript(events=events), judgings=[], answer=texts.get("answer", "")
    )
    statements.insert(SearchEntry, [row])
    return trial


def test_trials_are_found_with_their_passage(signed_in, run):
    trial = stored(run, commands=["taskmgr deploy --env <prod>"])
    page = parse(signed_in("viewer").get(ADDRESS, {"q": "deploy"}))
    section = page.region("Trials")
    assert section.link("create").address == f"/p/tools/trials/{trial.pk}/"
    assert "Basics on local, run" in section.text
    assert "taskmgr deploy --env <prod>" in section.text


def test_filters_leave_trials_only(signed_in, run):
    stored(run, commands=["taskmgr deploy nightly"])
    page = parse(signed_in("viewer").get(ADDRESS, {"q": "nightly", "outcome": "fail"}))
    assert page.headings == ["Search", "Trials"]
    page = parse(signed_in("viewer").get(ADDRESS, {"q": "nightly", "outcome": "error"}))
    assert "No trial contains “nightly” and matches these filters." in page.text


def test_many_trials_are_shown_in_pages(signed_in, run):
    for number in range(25):
        stored(run, commands=[f"taskmgr deploy {number}"])
    client = signed_in("viewer")
    first = parse(client.get(ADDRESS, {"q": "deploy"}))
    second = parse(client.get(first.link("More matches").address.replace("?", f"{ADDRESS}?", 1)))
    assert second.region("Trials").count("taskmgr deploy") == 5
    assert "page=1" in second.link("Better matches").address


def test_an_odd_page_number_is_no_error(signed_in, run):
    stored(run, commands=["taskmgr deploy"])
    client = signed_in("viewer")
    for page in ("0", "-1", "x", "９", "99999999999999999999"):
        assert client.get(ADDRESS, {"q": "deploy", "page": page}).status_code == 200, page


def test_an_odd_query_is_no_error(signed_in, run):
    client = signed_in("viewer")
    for q in ('"', "-", "***", "AND OR NOT NEAR", "a" * 900, "'; --", "{commands} : x", "col:x"):
        assert client.get(ADDRESS, {"q": q}).status_code == 200, q


def test_found_trials_are_a_table_as_csv(signed_in, run):
    trial = stored(run, commands=["taskmgr deploy"])
    response = signed_in("viewer").get(ADDRESS, {"q": "deploy", "format": "csv"})
    lines = b"".join(response.streaming_content).decode().splitlines()
    assert lines[0].startswith("trial,run,suite,scenario,index,outcome")
    assert lines[1].startswith(f"{trial.pk},{run.pk},basics,create,0,fail,local,")
    assert "commands,taskmgr deploy" in lines[1]
