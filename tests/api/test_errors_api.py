"""One shape for everything that is refused."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.api.document import DOCUMENT

pytestmark = pytest.mark.one_database

OPERATIONS = [
    (method, path) for path, methods in DOCUMENT["paths"].items() for method in methods if path != "/health"
]


def holds_any_text(schema: dict[str, Any]) -> bool:
    """Return whether a parameter takes texts of every kind, one or several."""
    parts = [schema, schema.get("items", {}), *schema.get("anyOf", ())]
    limits = {"enum", "format", "pattern"}
    return any(part.get("type") == "string" and not limits & part.keys() for part in parts)


TEXTS = [
    (method, path, parameter["name"])
    for method, path in OPERATIONS
    for parameter in DOCUMENT["paths"][path][method].get("parameters", ())
    if parameter["in"] == "query" and holds_any_text(parameter["schema"])
]


def assert_shape(response: Any, status: int, id: str) -> dict[str, Any]:
    body = response.json()
    assert response.status_code == status
    assert set(body) == {"detail", "id", "problems"}
    assert body["id"] == id
    assert body["detail"].endswith(".")
    return body


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_refuses_in_one_shape(client, db, method, path):
    assert_shape(client.generic(method.upper(), f"/api/v1{path}"), 401, "api/unauthenticated")


@pytest.mark.parametrize(("method", "path", "name"), TEXTS)
def test_a_text_that_no_database_keeps_is_refused_by_name(api, method, path, name):
    address = re.sub(r"\{\w+\}", "1", f"/api/v1{path}?{urlencode({name: 'a' + chr(0)})}")
    body = assert_shape(api("author").client.generic(method.upper(), address), 422, "api/invalid")
    (problem,) = [each for each in body["problems"] if name in each["where"].split(".")]
    assert "NUL" in problem["what"]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_documents_the_shape(method, path):
    answers = DOCUMENT["paths"][path][method]["responses"]
    shape = {"$ref": "#/components/schemas/ErrorOut"}
    refused = {str(status): each for status, each in answers.items() if int(status) >= 400}
    assert set(refused) >= {"401", "403", "404", "422"}
    assert all(each["content"]["application/json"]["schema"] == shape for each in refused.values())


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/api/v1/", "/api/v2/runs", "/api/v1/runs/"])
def test_an_unknown_address(client, db, path):
    assert_shape(client.get(path), 404, "api/not-found")


def test_a_method_that_an_address_does_not_take(api):
    response = api().delete("/suites")
    assert_shape(response, 405, "api/method")
    assert "GET" in response.headers["Allow"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000], ids=["empty", "cut", "bytes", "deep"])
def test_a_body_that_is_not_json(api, client, body):
    response = api().client.generic("POST", "/api/v1/runs", body, "application/json")
    assert response.status_code in (400, 422)
    assert_shape(response, response.status_code, response.json()["id"])


@pytest.mark.parametrize(
    ("body", "where", "what"),
    [
        ({}, "body.suites", "It is missing."),
        ({"suites": ["a"], "trails": 3}, "body.trails", "There is no field of this name."),
        ({"suites": ["a"], "trials": 0}, "body.trials", "Input should be greater than or equal to 1."),
        ({"suites": ["a"], "targets": ["a\x00"]}, "body.targets.0", "It contains a NUL byte or an unpaired surrogate. Remove it."),
    ],
    ids=["missing", "misspelt", "too small", "NUL"],
)  # fmt: skip
def test_it_names_the_wrong_field(api, body, where, what):
    refusal = assert_shape(api().post("/runs", body), 422, "api/invalid")
    assert (where, what) in [(each["where"], each["what"]) for each in refusal["problems"]]


def test_a_body_that_is_too_large(api, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
    assert_shape(api().post("/runs", {"suites": ["x" * (2 << 20)]}), 413, "api/too-large")


@pytest.mark.parametrize("key", ["0", "-1", "9" * 30, "one", "1.5"])
def test_a_key_that_cannot_be_one(api, key):
    assert_shape(api().get(f"/runs/{key}"), 422, "api/invalid")
