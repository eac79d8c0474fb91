"""Every operation of the REST interface, asked for by everybody, at both of its addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import URLPattern, get_resolver

from evalhub.api import openapi_document
from tests.access.table import ANYONE, API_PAGES, OPERATIONS, READS_NO_PROJECT, ROLES, read

pytestmark = pytest.mark.one_database

GUARDED = [name for name, operation in OPERATIONS.items() if operation.least != ANYONE]
OF_PROJECT = [name for name in GUARDED if not name.startswith("GET /projects")]
RESTRICTED = [(name, role) for name in GUARDED for role in ROLES[: ROLES.index(OPERATIONS[name].least)]]
PERMITTED = [(name, role) for name in GUARDED for role in ROLES[ROLES.index(OPERATIONS[name].least) :]]


def ask(client: Any, name: str, keys: dict[str, Any], base: str = "/api/v1") -> Any:
    method, path = name.split(" ")
    operation = OPERATIONS[name]
    keys = {**keys, "slug": "tools"} if path.startswith("/projects") else keys
    body = operation.body
    if name == "POST /baselines":
        body = {**(body or {}), "run": keys["run_id"]}
    if name == "PATCH /alerts":
        body = {**(body or {}), "alerts": [{"id": keys["alert_id"]}]}
    address = base + (path + operation.query).format(**keys)
    return read(client.generic(method, address, json.dumps(body) if body else "", "application/json"))


def assert_refused(response: Any, status: int) -> None:
    assert response.status_code == status
    body = response.json()
    assert set(body) == {"detail", "id", "problems"}
    assert body["detail"].endswith(".")
    assert body["id"]


def test_every_operation_is_in_the_table():
    paths = openapi_document()["paths"]
    found = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert found == set(OPERATIONS)


def test_every_address_is_an_operation_or_in_the_table():
    (resolver,) = (each for each in get_resolver().url_patterns if getattr(each, "namespace", "") == "api")
    names = {each.name for each in resolver.url_patterns if isinstance(each, URLPattern)}
    operations = {
        operation["operationId"].rsplit("_api_")[-1]
        for methods in openapi_document()["paths"].values()
        for operation in methods.values()
    }
    assert {name for name in names if not any(each.endswith(name) for each in operations)} == API_PAGES


@pytest.mark.parametrize("name", GUARDED)
def test_strangers_are_refused(program, keys, name):
    assert_refused(ask(program("nobody"), name, keys), 401)


@pytest.mark.parametrize(("name", "role"), RESTRICTED)
def test_a_lesser_role_is_refused(program, keys, name, role):
    assert_refused(ask(program(role), name, keys), 403)


@pytest.mark.parametrize(("name", "role"), PERMITTED)
def test_the_role_is_enough(program, keys, name, role):
    status = ask(program(role), name, keys).status_code
    own_only = name == "DELETE /tokens/{token_id}" and role != "admin"
    assert status == 404 if own_only else status in (200, 201, 202, 204, 422)


@pytest.mark.parametrize("name", OF_PROJECT)
def test_the_project_can_be_named(program, keys, name):
    status = ask(program("admin"), name, keys, "/api/v1/projects/tools").status_code
    assert status in (200, 201, 202, 204, 422)


@pytest.mark.parametrize("name", OF_PROJECT)
def test_another_project_cannot_be_named(program, keys, name):
    assert_refused(ask(program("stranger"), name, keys, "/api/v1/projects/tools"), 404)


NEEDS_INPUT = ("POST /suites", "POST /runs", "POST /results", "POST /sessions")


@pytest.mark.parametrize("name", [name for name in GUARDED if name not in READS_NO_PROJECT])
def test_a_member_of_another_project_gets_nothing(program, keys, name):
    response = ask(program("stranger"), name, keys)
    if response.status_code != 200:
        assert_refused(response, 422 if name in NEEDS_INPUT else 404)
        return
    answer = response.json()
    items = answer["subcommands"] if name == "GET /usage" else answer["items"]
    assert [item for item in items if item.get("slug") != "other" and item.get("name") != "walk"] == []


def test_health_needs_no_token(program, db):
    assert program("nobody").get("/api/v1/health").json()["database"] == "ok"


@pytest.mark.parametrize("address", ["/api/v1/openapi.json", "/api/v1/docs"])
def test_the_description_is_open(program, db, address):
    assert program("nobody").get(address).status_code == 200
