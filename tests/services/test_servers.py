"""The pass over a database is really over that database."""

from __future__ import annotations

import os

import pytest
from django.conf import settings
from django.db import connection


@pytest.mark.django_db
def test_the_pass_runs_on_the_database_that_it_names():
    asked = os.environ.get("DATABASE_URL", "sqlite").split(":")[0]
    assert connection.vendor == asked


@pytest.mark.django_db
def test_the_test_database_is_one_that_threads_can_share():
    assert ":memory:" not in str(connection.settings_dict["NAME"])


def test_tests_have_a_data_directory_of_their_own():
    assert settings.BASE_DIR not in settings.DATA_DIR.parents
