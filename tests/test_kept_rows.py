"""Rows of a module: there for every test, gone after the last."""

from __future__ import annotations

import pytest
from pytest_django import DjangoDbBlocker

from evalhub.teams.models import Project
from tests.builders import make_project
from tests.kept_rows import kept_rows


def test_rows_are_there_until_the_end(db: None, django_db_blocker: DjangoDbBlocker) -> None:
    kept = kept_rows(django_db_blocker, make_project)
    made = next(kept)
    assert Project.objects.get() == made
    assert next(kept, None) is None
    assert not Project.objects.exists()


def test_a_module_whose_rows_cannot_be_made_leaves_none(db: None, django_db_blocker: DjangoDbBlocker) -> None:
    def fails() -> None:
        make_project()
        raise ValueError

    with pytest.raises(ValueError):
        next(kept_rows(django_db_blocker, fails))
    assert not Project.objects.exists()
