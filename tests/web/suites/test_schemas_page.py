"""The JSON Schemas, for everybody: a page that lists them, and documents that an editor asks for again and again."""

from __future__ import annotations

import json

import pytest

from runs.suites.file_schemas import FILE_SCHEMAS, schema_text
from tests.web.screen import parse

pytestmark = [pytest.mark.one_database, pytest.mark.django_db]


def test_it_lists_the_schemas_without_sign_in(client) -> None:
    page = parse(client.get("/schemas/"))
    assert {link["href"] for link in page.all("table a")} == {
        f"/schemas/{name}.json" for name in FILE_SCHEMAS
    }


def test_it_shows_the_line_for_an_editor_with_the_servers_address(client, settings) -> None:
    settings.PUBLIC_URL = "https://evals.example/"
    text = client.get("/schemas/").content.decode()
    assert "# yaml-language-server: $schema=https://evals.example/schemas/llm-tool-test.json" in text


@pytest.mark.parametrize("name", ["targets", "rubric"])
def test_a_schema_is_sent_without_sign_in(client, name) -> None:
    answer = client.get(f"/schemas/{name}.json")
    assert answer["Content-Type"] == "application/schema+json"
    assert answer["Cache-Control"] == "public, max-age=3600"
    assert json.loads(answer.content) == json.loads(schema_text(name))


def test_a_schema_that_an_editor_has_is_not_sent_again(client) -> None:
    first = client.get("/schemas/targets.json")
    again = client.get("/schemas/targets.json", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    other = client.get("/schemas/rubric.json", headers={"If-None-Match": first["ETag"]})
    assert other.status_code == 200


def test_an_unknown_format_is_not_found(client) -> None:
    assert client.get("/schemas/nothing.json").status_code == 404
