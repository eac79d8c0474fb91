"""Pages and REST name the workers that use another file store."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from evalhub.teams.models import ApiToken
from runs.models import Worker
from runs.results.files.artifacts import store_id, store_problems
from tests.builders import make_member, make_project
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

ELSEWHERE = "stores files elsewhere: set EVALHUB_STORE or share the data directory."


@pytest.mark.django_db
class TestProblems:
    @pytest.fixture(autouse=True)
    def own_store(self, settings, tmp_path):
        settings.ARTIFACTS_DIR = tmp_path / "artifacts"

    def test_a_worker_of_the_same_store_is_none(self):
        Worker.objects.create(name="eval-1", store=store_id())
        assert store_problems() == []

    def test_a_worker_of_another_store_is_named(self):
        Worker.objects.create(name="eval-1", store="other")
        assert store_problems() == [f"Worker eval-1 {ELSEWHERE}"]

    def test_a_worker_that_knows_no_store_is_left_out(self):
        Worker.objects.create(name="eval-1")
        assert store_problems() == []

    def test_a_worker_that_has_gone_silent_is_left_out(self):
        Worker.objects.create(name="eval-1", store="other", seen=timezone.now() - timedelta(minutes=2))
        assert store_problems() == []

    def test_an_unreadable_store_is_reported(self, settings, tmp_path):
        (tmp_path / "file").write_text("")
        settings.ARTIFACTS_DIR = tmp_path / "file"
        Worker.objects.create(name="eval-1", store="other")
        (problem,) = store_problems()
        assert problem.startswith("The file store cannot be read: ")

    def test_the_api_reports_it_to_admins(self):
        Worker.objects.create(name="eval-1", store="other")
        project = make_project()
        token = ApiToken.issue(project, make_member(project, "admin"), name="t", role="admin")[1]
        answer = Client().get("/api/v1/health", headers={"Authorization": f"Bearer {token}"}).json()
        assert answer["store"] == f"Worker eval-1 {ELSEWHERE}"

    def test_strangers_see_nothing(self, settings):
        settings.EMBEDDED = False
        Worker.objects.create(name="eval-1", store="other")
        assert Client().get("/api/v1/health").json()["store"] is None
        assert "store" not in Client().get("/healthz").json()
