"""The OpenAPI document is kept beside the code, and docs/api.md names every operation and parser."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from ninja import Schema

from evalhub.api import openapi_document
from tests.api.document import DOCUMENT

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
OPERATIONS = [(method, path) for path, each in DOCUMENT["paths"].items() for method in each]
BELOW_A_TRIAL = "/trials/{trial_id}/"


def exported() -> str:
    out = StringIO()
    call_command("export_openapi", stdout=out)
    return out.getvalue()


def test_the_kept_document_is_in_step():
    assert json.loads(exported()) == DOCUMENT, "Run `make snapshot` and look at the change."


def test_it_is_made_once():
    assert openapi_document() is openapi_document()


def test_every_operation_has_its_own_name_and_sentence():
    operations = [each for methods in openapi_document()["paths"].values() for each in methods.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    assert [each["operationId"] for each in operations if not each.get("description", "").strip()] == []


def test_the_name_of_a_schema_means_one_class():
    classes = list(Schema.__subclasses__())
    for each in classes:
        classes += each.__subclasses__()
    names = Counter(
        each.__name__
        for each in classes
        # `columns` makes another class of the same name from one.
        if each.__module__.startswith(("evalhub", "runs", "scenarios"))
        and each.__name__ not in [other.__name__ for other in each.__subclasses__()]
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_it_is_served(client, db):
    assert client.get("/api/v1/openapi.json").json() == json.loads(exported())


def test_the_page_has_every_operation(client, db):
    page = client.get("/api/v1/docs").content.decode()
    assert all(f'<td class="mono">{path}</td>' in page for path in openapi_document()["paths"])


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_is_described(method, path):
    if path.startswith(BELOW_A_TRIAL):
        assert f"`/{path.removeprefix(BELOW_A_TRIAL)}`" in TEXT
    else:
        assert f"`{method.upper()} {path}`" in TEXT
