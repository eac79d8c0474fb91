"""Every page below a project: signed in, a member, with the role it takes."""

from __future__ import annotations

from functools import cache

import pytest
from django.test import Client

from evalhub.teams import audit
from tests.builders import close, make_member, make_project, make_run, make_suite, make_trial
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

PAGES = {
    "home": "/p/tools/",
    "running": "/p/tools/running/",
    "suites": "/p/tools/suites/",
    "suite": "/p/tools/suites/basics/",
    "runs": "/p/tools/runs/",
    "run new": "/p/tools/runs/new/",
    "run": "/p/tools/runs/{run}/",
    "progress": "/p/tools/runs/{run}/progress/",
    "trial": "/p/tools/trials/{trial}/",
    "trends": "/p/tools/trends/",
    "reviews": "/p/tools/reviews/",
}
ANSWERS = {"running": 302, "progress": 302}
"""Fragments that lead to their page when no script asks."""


@pytest.fixture
def addresses(project):
    run = make_run(make_suite(project, name="Basics"))
    trial = make_trial(run)
    close(run)
    return {name: path.format(run=run.pk, trial=trial.pk) for name, path in PAGES.items()}


@pytest.mark.parametrize("embedded", [True, False])
def test_only_an_embedded_evalhub_names_the_command_that_signs_in(client, settings, embedded):
    settings.EMBEDDED = embedded
    assert ("signin_link" in parse(client.get("/sign-in/"))) is embedded


def test_the_home_shows_recent_activity(signed_in, project):
    audit.append_event(project, make_member(project, "author", "grace"), "suite.upload", "stock")
    assert "grace uploaded the suite stock" in parse(signed_in().get("/p/tools/"))


@pytest.mark.parametrize(
    ("action", "subject", "sentence", "runs"),
    [
        ("baseline.set", "run 7", "marked as baseline run 7", ["7"]),
        ("run.request", "2 runs, 7 to 8", "started 2 runs, 7 to 8", ["7", "8"]),
        ("target.change", "run 7", "changed the target run 7", []),
        ("run.cancel", "", "cancelled", []),
    ],
)
def test_recent_activity_links_its_runs(signed_in, project, action, subject, sentence, runs):
    audit.append_event(project, None, action, subject)
    (activity,) = parse(signed_in().get("/p/tools/")).all("#lately")
    assert sentence in activity
    assert activity.links == {run: f"/p/tools/runs/{run}/" for run in runs}


@pytest.mark.parametrize("name", PAGES)
def test_it_works(signed_in, addresses, name):
    assert signed_in().get(addresses[name]).status_code == ANSWERS.get(name, 200)


@pytest.mark.parametrize("name", PAGES)
def test_a_head_request_gets_no_body(signed_in, addresses, name):
    response = signed_in().head(addresses[name])
    assert response.status_code == ANSWERS.get(name, 200)
    assert response.content == b""


@pytest.mark.parametrize("name", PAGES)
def test_it_requires_sign_in(client, addresses, name):
    response = client.get(addresses[name])
    assert response.status_code == 302
    assert response.url.startswith("/sign-in/?next=/p/tools/")


@pytest.mark.parametrize("name", PAGES)
def test_it_is_not_found_by_members_of_another_project(signed_in, addresses, name):
    stranger = signed_in(of=make_project("other"))
    assert stranger.get(addresses[name]).status_code == 404


@pytest.mark.parametrize("name", ["run", "trial", "progress", "suite"])
def test_it_does_not_lend_objects_to_another_project(signed_in, addresses, name):
    stranger = signed_in(of=make_project("other"))
    assert stranger.get(addresses[name].replace("/tools/", "/other/")).status_code == 404


@pytest.mark.parametrize(
    ("role", "path", "status"), [("viewer", "/p/tools/runs/new/", 403), ("runner", "/p/tools/runs/new/", 200)]
)
def test_it_asks_for_the_role(signed_in, project, role, path, status):
    assert signed_in(role).get(path).status_code == status


def test_it_says_which_role_is_missing(signed_in, project):
    response = signed_in("viewer").get("/p/tools/runs/new/")
    assert "Your role here, viewer, can't run." in parse(response)


@pytest.mark.parametrize("role", ["viewer", "runner"])
def test_it_lets_only_authors_upload(signed_in, project, role):
    assert signed_in(role).post("/p/tools/upload/").status_code == 403


def test_it_sends_the_whole_page_to_the_sign_in_when_htmx_asks(client, addresses):
    response = client.get(addresses["progress"], headers={"HX-Request": "true"})
    assert response.headers["HX-Redirect"].startswith("/sign-in/")


@pytest.mark.parametrize("kind", ["runs", "trials"])
def test_short_addresses_lead_members_only(signed_in, addresses, kind):
    whole = addresses["run" if kind == "runs" else "trial"]
    short = whole.removeprefix("/p/tools")
    assert signed_in().get(short).url == whole
    assert signed_in(of=make_project("other")).get(short).status_code == 404


def test_short_addresses_require_sign_in(addresses):
    assert Client().get("/runs/1/").url == "/sign-in/?next=/runs/1/"


@pytest.mark.parametrize(
    ("headers", "back"),
    [
        ({"Referer": "http://testserver/p/tools/settings/"}, "/p/tools/settings/"),
        ({"Referer": "https://elsewhere.example/p/tools/settings/"}, "/"),
        ({}, "/"),
        (
            {"HX-Request": "true", "HX-Current-URL": "http://testserver/p/tools/runs/?q=a%26b"},
            "/p/tools/runs/%3Fq%3Da%2526b",
        ),
        ({"HX-Request": "true", "HX-Current-URL": "//elsewhere.example/"}, "/"),
    ],
    ids=["its page", "another site", "no page", "by htmx", "another site by htmx"],
)
def test_signing_in_again_returns_to_the_page_not_the_form(client, project, headers, back):
    response = client.post("/p/tools/settings/members/", headers=headers)
    to = response.headers["HX-Redirect"] if "HX-Request" in headers else response.url
    assert to == f"/sign-in/?next={back}"


@pytest.mark.parametrize("role", ["viewer", "author"])
def test_what_a_role_cannot_do_is_not_offered(signed_in, addresses, role):
    """Every page's links and buttons answer who sees them."""
    client, refused = signed_in(role), set()
    status = cache(lambda link: client.get(link).status_code)
    for address in addresses.values():
        page = parse(client.get(address, follow=True))
        for link in page.links.values():
            if link.startswith("/p/tools/") and status(link) == 403:
                refused.add((address, link))
    assert refused == set()


def test_a_runs_number_finds_the_run(signed_in, addresses):
    number = addresses["run"].split("/")[-2]
    assert signed_in().get(f"/p/tools/search/?q={number}").headers["Location"] == addresses["run"]
    assert signed_in().get("/p/tools/search/?q=99999").status_code == 200
