"""What the versions of a suite differ in, and a suite's page over them."""

from __future__ import annotations

import pytest

from scenarios.formats.parsed import FixtureFile
from scenarios.models import Fixture, ScenarioVersion
from scenarios.storing import pack
from tests.builders import close, make_project, make_run, make_suite, make_trial, make_version
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


@pytest.fixture
def versions(project):
    suite = make_suite(project, ("create", "export", "drop"), name="Basics").suite
    make_version(suite, create={"prompt": "<b>Make</b>\u202eit."}, export={"description": "Reworded."})
    make_version(suite, create={"prompt": "Make it."}, export={}, fresh={})
    return suite


def test_a_suite_shows_what_its_newest_version_changed(signed_in, versions):
    table = parse(signed_in().get("/p/tools/suites/basics/")).table("v2 → v3")
    assert [row.texts for row in table.rows] == [
        ["fresh", "added"],
        ["create", "wording only"],
        ["export", "wording only"],
    ]


def test_choosing_a_version_shows_what_that_one_changed(signed_in, versions):
    headers = {"HX-Request": "true", "HX-Target": "versions"}
    text = signed_in().get("/p/tools/suites/basics/?version=2", headers=headers).content.decode()
    assert "<html" not in text
    assert "v1 → v2" in text
    assert "2 changed, 1 retired; 1 of 2 not comparable." in text
    assert "wording only" in text


def test_filters_and_the_chosen_version_stay_together(signed_in, versions):
    page = parse(signed_in().get("/p/tools/suites/basics/?version=2&show=few"))
    assert page.link("v1, changes").address == "?show=few&version=1"
    assert "?version=2" in page.region("Show").addresses


def test_the_first_version_has_nothing_before_it(signed_in, project):
    make_suite(project, name="Basics")
    client = signed_in()
    assert "This is the first version." in parse(client.get("/p/tools/suites/basics/"))
    assert "This is the first version." in parse(client.get("/p/tools/suites/basics/difference/"))


@pytest.mark.parametrize("version", ["x", "99", "-1", "2" * 30])
def test_a_version_that_is_not_there_is_taken_for_the_newest(signed_in, versions, version):
    page = parse(signed_in().get(f"/p/tools/suites/basics/?version={version}"))
    assert "v2 → v3" in page.headings
    assert page.link("v3, changes").get("aria-current") == "true"


def test_a_difference_is_shown_line_by_line(signed_in, versions):
    page = parse(signed_in().get("/p/tools/suites/basics/difference/?version=2"))
    assert "prompt: Do create." in page
    assert "\u202e" not in page
    assert "wording only; results stay comparable" in page
    assert any("+ prompt: <b>Make</b>⟨U+202E⟩it." in each for each in page.all("tr.added"))


@pytest.mark.parametrize(
    ("query", "shown"),
    [("since=1&version=3", "v1 → v3"), ("since=9&version=3", "v2 → v3"), ("since=x&version=2", "v1 → v2")],
)
def test_any_two_versions_are_compared(signed_in, versions, query, shown):
    page = parse(signed_in().get(f"/p/tools/suites/basics/difference/?{query}"))
    assert page.headings[0] == shown


def test_fixture_files_that_differ_are_shown(signed_in, versions):
    fixtures = [
        Fixture.objects.create(
            project=versions.project,
            sha256=f"{number:064x}",
            archive=pack((FixtureFile("todo.txt", text), FixtureFile("same.txt", b"a"))),
        )
        for number, text in enumerate((b"milk\n", b"bread\n"))
    ]
    for number, fixture in ((1, fixtures[0]), (3, fixtures[1])):
        entry = versions.versions.get(number=number).entries.get(scenario_version__scenario__key="create")
        ScenarioVersion.objects.filter(pk=entry.scenario_version_id).update(fixture=fixture)
    page = parse(signed_in().get("/p/tools/suites/basics/difference/?since=1&version=3"))
    assert "− milk" in page
    assert "+ bread" in page
    assert "same.txt" not in page


def test_a_single_scenarios_difference_can_be_shown(signed_in, versions):
    page = parse(signed_in().get("/p/tools/suites/basics/difference/?version=2&scenario=drop"))
    assert page.headings == ["v1 → v2", "drop", "2 more"]
    assert [each.text for each in page.region("2 more").all("li")] == [
        "create changed: task",
        "export changed",
    ]


def test_only_the_first_differences_are_on_the_page(signed_in, project):
    suite = make_suite(project, ("create",), name="Basics").suite
    make_version(suite, **{f"made{n:02}": {} for n in range(25)})
    page = parse(signed_in().get("/p/tools/suites/basics/difference/"))
    assert page.headings[1:] == [*(f"made{n:02}" for n in range(20)), "6 more"]
    rest = page.region("6 more")
    assert len(rest.all("li")) == 6
    assert rest.link("made20").address == "?since=1&version=2&scenario=made20"


@pytest.mark.parametrize("page", ["", "difference/"])
def test_a_suite_of_another_project_is_not_there(signed_in, page):
    make_suite(make_project("other"), name="Secret")
    assert signed_in().get(f"/p/tools/suites/secret/{page}").status_code == 404


def test_a_suite_makes_as_many_queries_for_many_scenarios(signed_in, project, django_assert_max_num_queries):
    suite = make_suite(project, [f"s{n}" for n in range(20)], name="Basics").suite
    last = make_version(suite, **{f"s{n}": {} for n in range(20)})
    for _ in range(3):
        make_trial(close(make_run(last)))
    client = signed_in()
    # Session, access, the suite, its versions, the difference of two, targets, scenarios, two for the strips, guidance,
    # baselines, proofs, the untriaged.
    with django_assert_max_num_queries(13):
        client.get("/p/tools/suites/basics/")


def test_a_suite_can_be_narrowed_to_a_tier(signed_in, project):
    suite = make_suite(project, ("first",), name="Basics", tier=1).suite
    make_version(suite, first={"tier": 1}, second={"tier": 2}, third={"tier": 2})
    page = parse(signed_in().get("/p/tools/suites/basics/?tier=2"))
    assert page.table("Scenarios").row_names == ["second", "third"]
    tiers = [each for each in page.region("Show").all("a") if "tier=" in each.address]
    chips = [(each.text, each.get("aria-current")) for each in tiers]
    assert ("1 1", None) in chips and ("2 2", "true") in chips
