"""Filters of the regressions page: what each leaves, what is counted, and how to drop it."""

from __future__ import annotations

import pytest

from runs.models import Alert
from tests.builders import make_compared, make_member, make_project, make_suite, make_target
from tests.web.screen import main_of, parse

ADDRESS = "/p/tools/regressions/"


def lost(suite, key="export", *, state="untriaged", by=None, target=None):
    """Return the run of a suite's newest alert: it lost one scenario against its baseline."""
    changes = {"target": target} if target else {}
    make_compared(suite, {"create": "pass", "export": "pass"}, trials=6, **changes)
    outcomes = {each: "fail" if each == key else "pass" for each in ("create", "export")}
    run = make_compared(suite, outcomes, trials=6, **changes)
    Alert.objects.filter(run=run).update(state=state, assignee=by)
    return run


def runs(response):
    """Return the numbers of the runs whose cards the page shows, in its order."""
    return [int(each.all("h2 a")[0].text.removeprefix("Run ")) for each in parse(response).all("article")]


def counted(response):
    """Return the counts that tabs show, by their titles."""
    tabs = [each.text.rpartition(" ") for each in parse(response).region("State").all("a")]
    return {title: int(n) for title, _, n in tabs if n.isdigit()}


@pytest.fixture
def grace(project):
    return make_member(project, "runner", "grace")


def test_it_filters_by_suite_target_scenario_and_assignee(signed_in, project, version, grace):
    lost(version)
    second = make_suite(project, ("create", "export"), name="Second")
    wanted = lost(second, "create", by=grace, target=make_target(project, "codex"))
    client = signed_in()
    for text, assignee in (("SECOND", ""), ("codex", ""), ("creat", ""), ("", "grace"), ("second", "grace")):
        found = runs(client.get(ADDRESS, {"q": text, "assignee": assignee}))
        assert found == [wanted.pk], (text, assignee)


def test_a_scenario_that_was_not_lost_is_not_found(signed_in, version):
    lost(version, "export")
    assert runs(signed_in().get(ADDRESS, {"q": "create"})) == []


def test_it_filters_unassigned_alerts(signed_in, version, grace):
    lost(version, by=grace)
    wanted = lost(version)
    response = signed_in().get(ADDRESS, {"assignee": "(nobody)"})
    assert runs(response) == [wanted.pk]
    assert "assignee nobody" in parse(response)


def test_the_tabs_count_what_the_filters_leave_and_keep_them(signed_in, version, grace):
    lost(version, by=grace)
    lost(version, state="fixed", by=grace)
    lost(version, state="fixed")
    response = signed_in().get(ADDRESS, {"assignee": "grace", "q": "exp&"})
    assert counted(response) == {}
    response = signed_in().get(ADDRESS, {"assignee": "grace", "q": "exp"})
    assert counted(response) == {"Untriaged": 1, "Fixed": 1}
    assert "?state=fixed&q=exp&assignee=grace" in parse(response).region("State").addresses
    assert counted(signed_in().get(ADDRESS)) == {"Untriaged": 1, "Fixed": 2}


def test_older_ones_keep_the_filters(signed_in, version, grace):
    wanted = [lost(version, state="fixed", by=grace).pk for _ in range(11)]
    lost(version, state="fixed")
    client = signed_in()
    first = client.get(ADDRESS, {"state": "fixed", "assignee": "grace"})
    assert runs(first) == wanted[:0:-1]
    assert runs(client.get(ADDRESS + parse(first).link("Older ›").address)) == wanted[:1]


def test_it_suggests_a_filter_to_remove(signed_in, version, grace):
    lost(version)
    lost(version, state="fixed", by=grace)
    page = parse(signed_in().get(ADDRESS, {"q": "export", "assignee": "grace"}))
    assert (
        "No regression matches text “export”, assignee “grace”. Found 1 regression without assignee." in page
    )
    assert "1 matches in other states; see the tabs above." in page
    assert page.link("Remove assignee").address == "?state=untriaged&q=export"


def test_without_any_regression_no_filter_is_to_blame(signed_in):
    page = main_of(signed_in().get(ADDRESS, {"q": "export"}))
    assert "No regressions" in page
    assert page.all("form") == [] and "Clear filters" not in page


def test_who_is_asked_for_stays_chosen_though_no_member(signed_in, version, grace):
    lost(version)
    field = parse(signed_in().get(ADDRESS, {"assignee": "<b>ada"})).field("Assignee")
    assert (field.value, field.choices["<b>ada"], field.choices["grace"]) == ("<b>ada", "<b>ada", "grace")


def test_a_text_is_sought_as_it_is_written(signed_in, version):
    lost(version)
    client = signed_in()
    for text in ("%", "_", "<script>alert(1)</script>", "'; --", "\\"):
        response = client.get(ADDRESS, {"q": text})
        assert runs(response) == [], text
        assert all("alert(1)" not in each.text for each in parse(response).all("script"))


def test_htmx_gets_the_counts_of_the_tabs_with_the_cards(signed_in, version):
    lost(version)
    text = signed_in().get(ADDRESS, {"q": "exp"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert parse(text).region("State")["hx-swap-oob"] == "true"
    assert "hx-swap-oob" not in signed_in().get(ADDRESS, {"q": "exp"}).content.decode()


def test_another_projects_regressions_are_not_counted(signed_in, version):
    lost(make_suite(make_project("other"), ("create", "export")))
    lost(version)
    assert counted(signed_in().get(ADDRESS, {"q": "export"})) == {"Untriaged": 1}


def test_filters_cost_no_query(signed_in, version, grace, django_assert_max_num_queries):
    lost(version, by=grace)
    client = signed_in()
    with django_assert_max_num_queries(10):
        assert len(runs(client.get(ADDRESS, {"q": "export", "assignee": "grace"}))) == 1
