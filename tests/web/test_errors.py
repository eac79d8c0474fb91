"""Pages for what goes wrong, health, and the address of nothing."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import Client

from evalhub.web.middleware import BrowserPolicies
from runs.models import Target, Worker
from tests.builders import make_run, make_suite, make_trial
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_a_missing_run_leads_to_the_runs_of_its_project(signed_in, project):
    response = signed_in().get("/p/tools/runs/999999/")
    assert response.status_code == 404
    assert "This page doesn't exist or you can't see it." in parse(response)
    assert parse(response).link("Runs of this project").address == "/p/tools/runs/"


def test_an_unknown_address_gets_a_page(signed_in):
    response = signed_in().get("/p/nowhere/")
    assert response.status_code == 404
    assert "Page not found" in parse(response)
    assert "web/not-found" in parse(response)


def test_an_unknown_host_gets_a_page(client, db):
    response = client.get("/patterns/", headers={"host": "elsewhere.example"})
    assert response.status_code == 400
    assert "Bad request" in parse(response)


@pytest.mark.parametrize(
    "address",
    [
        "runs/?q=%00",
        "runs/?suite=a%00b",
        "runs/?model=%%00",
        "suites/?q=%00",
        "trends/?target=%00",
        "search/?q=%00",
        "settings/audit/?action=%00",
        "trials/1/artifacts/%00/",
    ],
)
def test_an_address_with_a_nul_is_refused_on_every_database(signed_in, version, address):
    response = signed_in().get(f"/p/tools/{address}")
    assert response.status_code == 400
    assert "Bad request" in parse(response)
    assert "Content-Security-Policy" in response.headers


def test_an_encoded_percent_sign_is_not_a_nul(signed_in, version):
    assert signed_in().get("/p/tools/runs/?q=%2500").status_code == 200


def test_a_form_from_elsewhere_is_refused_in_a_sentence(db):
    response = Client(enforce_csrf_checks=True).post("/sign-in/", {})
    assert response.status_code == 403
    assert "Reload the page and submit it again." in parse(response)


@pytest.mark.parametrize(
    ("path", "status", "identifier"),
    [
        ("/away/", 503, "web/database-away"),
        ("/lost/", 503, "web/database-away"),
        ("/fault/", 500, "web/failed"),
        ("/wrong-value/", 500, "web/failed"),
    ],
)
def test_a_fault_gets_a_page_that_keeps_its_cause_to_the_log(db, settings, path, status, identifier):
    settings.ROOT_URLCONF = "tests.web.faulty_urls"
    response = Client(raise_request_exception=False).get(path)
    assert response.status_code == status
    assert identifier in response.content.decode()
    assert not {"gone", "oops"} & set(response.content.decode().split())


@pytest.mark.parametrize("path", ["/patterns/", "/sign-in/"])
def test_every_page_has_the_policy(signed_in, path):
    policy = signed_in().get(path).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy + ";"
    assert "frame-ancestors 'none'" in policy


def test_a_view_may_have_its_own_policy(rf):
    own = HttpResponse(headers={"Content-Security-Policy": "sandbox"})
    assert BrowserPolicies(lambda request: own)(rf.get("/")).headers["Content-Security-Policy"] == "sandbox"


def test_health_answers_anybody(client, project):
    make_trial(make_run(make_suite(project), state="queued"), outcome="")
    Worker.objects.create(name="eval-1", lanes=4, sandbox="bubblewrap")
    health = client.get("/healthz").json()
    assert health["database"] == "ok"
    assert health["queue"]["queued"] == 1
    assert health["queue"]["oldest_seconds"] >= 0
    assert health["workers"][0]["name"] == "eval-1"
    assert health["sandbox"] in ("require", "prefer", "off")


def test_health_says_which_labels_runs_wait_for(client, project, settings):
    settings.EMBEDDED = True
    run = make_run(make_suite(project), state="queued")
    Target.objects.filter(pk=run.target_id).update(labels=["gpu"])
    Worker.objects.create(name="w1", labels=["linux"])
    health = client.get("/healthz").json()
    assert health["waiting"] == ["1 run waits for a worker with the label gpu. None is running."]
    assert health["workers"][0]["labels"] == ["linux"]


def test_health_shows_a_missing_broker(client, db, settings):
    settings.BROKER_URL = "redis://127.0.0.1:1/0"
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json()["ok"] is False
    assert response.json()["broker"] == "The broker does not answer: ConnectionError."


@pytest.mark.parametrize("address", ["/p/tools/settings/tokens/", "/sign-out/"])
def test_a_form_only_address_explains_itself(signed_in, project, address):
    response = signed_in().get(address)
    assert (response.status_code, "POST" in response["Allow"]) == (405, True)
    assert "This address only accepts form submissions." in parse(response)


@pytest.mark.parametrize("path", ["nowhere/", "runs/999/"])
def test_a_page_that_is_not_there_leads_back_to_the_project(signed_in, path):
    page = parse(signed_in().get(f"/p/tools/{path}"))
    assert page.links["Home of this project"] == "/p/tools/"
    assert page.links["Runs of this project"] == "/p/tools/runs/"
