"""Whatever a program sends, evalhub answers as the OpenAPI document says, and never with a server error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy, one_of
from pytest_django import DjangoDbBlocker
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation, BaseSchema

from evalhub.teams.models import ApiToken
from tests.api.document import DOCUMENT
from tests.api.samples import make_samples
from tests.builders import make_member, make_project
from tests.kept_rows import kept_rows

EXAMPLES = 12
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]

OPERATIONS = [(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def schema() -> BaseSchema:
    return schemathesis.openapi.from_dict(DOCUMENT)


@pytest.fixture(scope="module")
def stored(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[str, Any]]:
    yield from kept_rows(django_db_blocker, _store)


def _store() -> dict[str, Any]:
    project = make_project()
    _, secret = ApiToken.issue(project, make_member(project), name="fuzz", role="admin")
    return {"headers": {"Authorization": f"Bearer {secret}"}, "keys": make_samples(project)}


@pytest.fixture
def sent(stored: dict[str, Any], db: None) -> dict[str, Any]:
    """Return a client, a token's header and the keys of things that exist."""
    return {**stored, "client": Client()}


# schemathesis gives the tests that it parametrizes one id under pytest 9.2, and pytest-xdist runs one test for each id.
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_it_never_fails_for_what_is_sent(
    method: str, path: str, sent: dict[str, Any], schema: BaseSchema
) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=right_and_wrong_cases(schema[path][method]))
    def check(case: schemathesis.Case) -> None:
        # Half of the requests are about things that exist, or most of them would end at a 404.
        if len(str(case.query) + str(case.body)) % 2:
            case.path_parameters = {
                name: sent["keys"].get(name, value) for name, value in case.path_parameters.items()
            }
        case.validate_response(answer_of(case, sent["client"], sent["headers"]), checks=CHECKS)

    check()


def right_and_wrong_cases(operation: APIOperation) -> SearchStrategy[schemathesis.Case]:
    """Draw requests as the document wants them, and others."""
    return one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))


def answer_of(case: Any, client: Client, headers: dict[str, str]) -> Response:
    """Send a case, take back what it stored, and return the answer as the checks want it."""
    # One client loads the middleware once; nothing else of it is kept.
    client.cookies.clear()
    given = case.as_transport_kwargs(base_url="http://localhost/api/v1", headers=headers)
    asked = requests.Request(**given).prepare()
    sent_headers = {name: value for name, value in asked.headers.items() if name.lower() != "content-length"}
    body = asked.body.encode() if isinstance(asked.body, str) else asked.body or b""
    content_type = sent_headers.pop("Content-Type", "application/octet-stream")
    with transaction.atomic():
        found = client.generic(asked.method, asked.path_url, body, content_type, headers=sent_headers)
        content = b"".join(found) if found.streaming else found.content
        transaction.set_rollback(True)
    return Response(
        status_code=found.status_code,
        headers={name: [value] for name, value in found.headers.items()},
        content=content,
        request=asked,
        elapsed=0.0,
        verify=False,
    )
