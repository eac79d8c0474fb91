"""What somebody without an account learns and can upset: health, headers, addresses."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from django.test import Client

from evalhub.teams.models import ApiToken
from evalhub.web.middleware import LONGEST_ADDRESS
from runs.models import Worker
from tests.builders import make_member, make_project
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[3]
SHORT = {"ok", "database", "broker", "disk"}


@pytest.fixture
def project(db, settings):
    settings.EMBEDDED = False
    Worker.objects.create(name="eval-1", lanes=4)
    return make_project()


def token(project, role):
    return ApiToken.issue(project, make_member(project, role), name="t", role=role)[1]


def health(**headers):
    return Client().get("/healthz", headers=headers).json()


def test_strangers_see_only_whether_it_works(project):
    assert set(health()) == SHORT
    assert Client().get("/api/v1/health").json()["version"] is None


@pytest.mark.parametrize("role", ["viewer", "runner", "author"])
def test_tokens_of_lesser_roles_see_no_more(project, role):
    assert set(health(Authorization=f"Bearer {token(project, role)}")) == SHORT


def test_an_admins_token_sees_every_worker(project):
    found = health(Authorization=f"Bearer {token(project, 'admin')}")
    assert [each["name"] for each in found["workers"]] == ["eval-1"]


def test_a_member_who_is_signed_in_sees_every_worker(project):
    client = Client()
    client.force_login(make_member(project, "viewer"))
    assert "workers" in client.get("/healthz").json()


def test_a_person_without_a_project_sees_no_more(project, django_user_model):
    client = Client()
    client.force_login(django_user_model.objects.create_user("nobody"))
    assert set(client.get("/healthz").json()) == SHORT


def test_the_metrics_token_sees_every_worker(project, settings):
    settings.METRICS_TOKEN = "known"
    assert "workers" in health(Authorization="Bearer known")
    assert set(health(Authorization="Bearer guessed")) == SHORT


def test_the_machine_of_an_embedded_evalhub_sees_every_worker(project, settings):
    settings.EMBEDDED = True
    assert "workers" in health()
    assert set(health(**{"X-Forwarded-For": "203.0.113.9"})) == SHORT


def test_pages_forbid_features_of_browsers(client, db):
    header = client.get("/sign-in/").headers["Permissions-Policy"]
    assert {"camera=()", "microphone=()", "geolocation=()"} <= set(header.split(", "))


def test_http_is_sent_to_https_but_for_health(client, db, settings):
    settings.SECURE_SSL_REDIRECT = True
    response = client.get("/sign-in/")
    assert (response.status_code, response.url) == (301, "https://testserver/sign-in/")
    assert client.get("/healthz").status_code == 200
    assert client.get("/sign-in/", headers={"X-Forwarded-Proto": "https"}).status_code == 200


def test_browsers_must_stay_with_https(client, db, settings):
    settings.SECURE_HSTS_SECONDS, settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = 3600, True
    response = client.get("/sign-in/", headers={"X-Forwarded-Proto": "https"})
    assert response.headers["Strict-Transport-Security"] == "max-age=3600; includeSubDomains"


LONG = "q=" + "a" * LONGEST_ADDRESS


def test_a_long_address_is_refused_in_the_shape_of_rest(client, db):
    response = client.get(f"/api/v1/runs?{LONG}")
    assert response.status_code == 414
    assert set(response.json()) == {"detail", "id", "problems"}
    assert response.json()["id"] == "api/address-too-long"


def test_a_long_address_of_a_page_is_refused_with_a_page(client, db):
    response = client.get(f"/sign-in/?{LONG}")
    assert response.status_code == 414
    assert "This URL is too long" in response.content.decode()


@pytest.fixture(scope="module")
def gunicorn(tmp_path_factory):
    """Give the port of evalhub behind gunicorn, as docs/operations.md starts it."""
    folder = tmp_path_factory.mktemp("gunicorn")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["evalhub.wsgi:application", "--bind", f"127.0.0.1:{port}", "--no-control-socket"]
    words += ["--worker-class", "evalhub.web.server.ThreadWorker", "--threads", "2"]
    env = {"PATH": os.environ["PATH"], "EVALHUB_DATA": str(folder)}
    (folder / "static").mkdir()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *words], cwd=ROOT, env=env, stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("length", [LONGEST_ADDRESS + 1, 20_000], ids=["that it reads", "that it does not"])
def test_gunicorn_answers_a_long_address_as_json(gunicorn, length):
    with closing(http.client.HTTPConnection("127.0.0.1", gunicorn, timeout=30)) as connection:
        connection.request("GET", "/api/v1/runs?q=" + "a" * length, headers={"Host": "localhost"})
        response = connection.getresponse()
        found = json.loads(response.read())
    assert (response.status, found["id"], found["problems"]) == (414, "api/address-too-long", [])


@pytest.mark.slow
def test_gunicorn_answers_large_headers_as_json(gunicorn):
    with closing(http.client.HTTPConnection("127.0.0.1", gunicorn, timeout=30)) as connection:
        connection.request("GET", "/healthz", headers={"Host": "localhost", "X-Long": "a" * 20_000})
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["id"]) == (431, "api/headers-too-large")
