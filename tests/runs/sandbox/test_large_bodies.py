"""Bodies that would fill a web process's memory or disk are refused before they are read."""

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

import psutil
import pytest
from django.test import Client

from evalhub.teams.models import ApiToken
from evalhub.web.middleware import FORM, LONGEST_ADDRESS, STRANGER
from evalhub.web.rest.json_bodies import MAX_VALUES
from scenarios.formats.parsed import MOST_PROBLEMS
from scenarios.formats.text_files import MAX_BYTES
from tests.builders import make_member, make_suite
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[3]
ENCODED = "application/x-www-form-urlencoded"
COOKIE = "csrftoken=" + "a" * 32
MEMORY = 300 << 20


def signed_in(project, role="viewer", **options):
    client = Client(**options)
    client.force_login(make_member(project, role))
    return client


def send(client, address, size, content_type=ENCODED):
    return client.post(address, b"a=" + b"b" * (size - 2), content_type=content_type)


@pytest.mark.parametrize("kind", [ENCODED, "multipart/form-data; boundary=x"], ids=["form", "file"])
def test_strangers_send_little(db, kind):
    response = send(Client(), "/sign-in/", STRANGER + 1, kind)
    assert response.status_code == 413
    assert "more than 64 kB. Sign in first." in response.content.decode()


def test_members_send_a_form_of_some_size(project):
    client = signed_in(project)
    assert send(client, f"/p/{project.slug}/settings/tokens/", STRANGER + 1).status_code == 422
    assert send(client, f"/p/{project.slug}/settings/tokens/", FORM + 1).status_code == 413


def test_pages_that_take_long_texts_send_them_as_multipart(project):
    """URL-encoded, a pasted transcript or a scenario file can be larger than `FORM`."""
    make_suite(project, ("create",), name="Basics")
    client = signed_in(project, "author")
    for address in ("suites/basics/pattern/", "new-suite/"):
        page = parse(client.get(f"/p/{project.slug}/{address}"))
        (form,) = (each for each in page.all("form[method=post]") if each.all("textarea"))
        assert form["enctype"] == form["hx-encoding"] == "multipart/form-data"


def test_files_are_limited_together(project, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 3 << 20
    client = signed_in(project, "author")
    response = send(client, f"/p/{project.slug}/upload/", (3 << 20) + 1, "multipart/form-data; boundary=x")
    assert response.status_code == 413


def test_the_token_of_a_viewer_sends_little(project):
    secret = ApiToken.issue(project, make_member(project, "viewer"), name="t", role="viewer")[1]
    body = json.dumps({"name": "t", "role": "viewer", "more": "x" * STRANGER})
    headers = {"Authorization": f"Bearer {secret}"}
    response = Client().post("/api/v1/tokens", body, content_type="application/json", headers=headers)
    assert (response.status_code, response.json()["id"]) == (413, "api/too-large")


def test_files_over_rest_are_limited_together(project, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
    response = send(Client(), "/api/v1/suites", (1 << 20) + 1, "multipart/form-data; boundary=x")
    assert (response.status_code, response.json()["id"]) == (413, "api/too-large")


def test_the_query_of_a_form_is_no_longer_than_an_address(project):
    """As multipart, a form may be large, and decoding a query takes 80 times its memory."""
    client = signed_in(project, "author")
    given = {"query": "state=open&suite=" + "%41" * LONGEST_ADDRESS}
    response = client.post(f"/p/{project.slug}/regressions/selected/", given)
    assert response.status_code == 302
    assert response["Location"].endswith("/regressions/")


def test_the_editor_takes_a_text_of_some_size(project):
    """Its page repeats the text and draws a number for each line."""
    client = signed_in(project, "author")
    given = {"path": "a.yaml", "name": "x", "text": "a\n" * (MAX_BYTES // 2 + 1)}
    response = client.post(f"/p/{project.slug}/new-suite/", given)
    assert response.status_code == 413
    assert "up to 2 MB" in response.content.decode()


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"])
def test_json_over_rest_has_a_limit_of_its_own(project, kind):
    """Each type, because an operation that takes JSON reads it whatever the request declares."""
    secret = ApiToken.issue(project, make_member(project, "author"), name="t", role="author")[1]
    headers = {"Authorization": f"Bearer {secret}"}
    body = b'{"suites": [' + b"{}," * MAX_VALUES + b"{}]}"
    response = Client().post("/api/v1/runs", body, content_type=kind, headers=headers)
    assert (response.status_code, response.json()["id"]) == (413, "api/too-large")
    assert response.json()["detail"] == "The body has more than 500,000 values. Send less at once."


def test_a_long_text_within_json_is_no_number_of_values(project):
    secret = ApiToken.issue(project, make_member(project, "author"), name="t", role="author")[1]
    body = {"suites": ["none"], "snapshot": 'a "quoted, b" [c],\n' * MAX_VALUES}
    response = Client().post(
        "/api/v1/runs", body, content_type="application/json", headers={"Authorization": f"Bearer {secret}"}
    )
    assert "none" in response.json()["detail"], response.content[:300]


@pytest.mark.hostile
@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", [b'\\"', b'"', b"\\", b'"\\'])
def test_broken_json_is_refused_in_linear_time(project, piece):
    secret = ApiToken.issue(project, make_member(project, "author"), name="t", role="author")[1]
    body = b"[" * MAX_VALUES + b'"' + piece * (1 << 22)
    response = Client().post(
        "/api/v1/runs", body, content_type="application/json", headers={"Authorization": f"Bearer {secret}"}
    )
    assert response.status_code in (400, 413)


def test_an_answer_over_rest_names_a_limited_number_of_problems(project):
    secret = ApiToken.issue(project, make_member(project, "author"), name="t", role="author")[1]
    headers = {"Authorization": f"Bearer {secret}"}
    body = {f"field {number}": 1 for number in range(2 * MOST_PROBLEMS)}
    response = Client().post("/api/v1/runs", body, content_type="application/json", headers=headers)
    assert (response.status_code, len(response.json()["problems"])) == (422, MOST_PROBLEMS)


@pytest.fixture
def server(tmp_path):
    """Give a process of gunicorn and its port."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["evalhub.wsgi:application", "--bind", f"127.0.0.1:{port}", "--no-control-socket"]
    words += ["--worker-class", "evalhub.web.server.ThreadWorker", "--threads", "2"]
    env = {"PATH": os.environ["PATH"], "EVALHUB_DATA": str(tmp_path), "EVALHUB_DEBUG": "yes"}
    (tmp_path / "static").mkdir()
    process = subprocess.Popen([sys.executable, "-m", "gunicorn", *words], cwd=ROOT, env=env)
    try:
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < end
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield process, port
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
def test_a_stranger_cannot_fill_the_memory(server):
    process, port = server
    # Percent signs take the most memory to decode; a cookie of the right shape makes Django read the form.
    body = b"a=" + b"%41" * (4 << 20)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        headers = {"Host": "localhost", "Cookie": COOKIE, "Content-Type": ENCODED}
        connection.request("POST", "/sign-in/", body, headers)
        status = connection.getresponse().status
    workers = psutil.Process(process.pid).children()
    peaks = [Path(f"/proc/{each.pid}/status").read_text().split("VmHWM:")[1].split()[0] for each in workers]
    assert status == 413
    assert max(map(int, peaks)) << 10 < MEMORY
