"""A project, and a person who reviews in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import make_member, make_project


@pytest.fixture
def project() -> Any:
    return make_project()


@pytest.fixture
def ada(project: Any) -> Any:
    return make_member(project, "runner", "ada")
