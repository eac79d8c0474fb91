"""Clients that carry a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from evalhub.teams.models import ApiToken, Project
from tests.builders import make_member, make_project
from tests.static_files import plain_static_files  # noqa: F401  # a fixture


class ApiClient:
    """Speaks JSON below /api/v1, as somebody."""

    def __init__(self, secret: str) -> None:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self.client = Client(headers=headers)

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/v1{path}", query)

    def delete(self, path: str) -> Any:
        return self.client.delete(f"/api/v1{path}")

    def post(self, path: str, body: Any = None) -> Any:
        return self.client.post(f"/api/v1{path}", body, content_type="application/json")

    def put(self, path: str, body: Any) -> Any:
        return self.client.put(f"/api/v1{path}", body, content_type="application/json")

    def patch(self, path: str, body: Any) -> Any:
        return self.client.patch(f"/api/v1{path}", body, content_type="application/json")

    def upload(self, path: str, *files: Any, **given: Any) -> Any:
        return self.client.post(f"/api/v1{path}", {"file": list(files), **given})


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> Callable[..., ApiClient]:
    """Return a client with a token of a role, of `project` unless another is given; an empty role is nobody."""

    def client(role: str = "admin", of: Project | None = None, **changes: Any) -> ApiClient:
        if not role:
            return ApiClient("")
        where = of or project
        owner = changes.pop("owner", None) or make_member(where, role)
        _, secret = ApiToken.issue(where, owner, name="test", role=role, **changes)
        return ApiClient(secret)

    return client
