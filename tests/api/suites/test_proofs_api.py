"""Proofs over REST."""

from __future__ import annotations

from runs.models import SuiteProof
from runs.tasks import do_job
from tests.builders import make_suite


class Worker:
    """Does what it is sent at once, in place of Celery."""

    def send_task(self, name: str, args: tuple[int, ...]) -> None:
        assert name == "runs.tasks.do_job"
        do_job(*args)


worker = Worker()


def test_a_requested_proof_is_made_and_read(api, project, settings, tmp_path):
    settings.CELERY_APP, settings.WORK_DIR = f"{__name__}.worker", tmp_path
    slug = make_suite(project, ("create",)).suite.slug
    assert api("viewer").get(f"/suites/{slug}/proofs").status_code == 404
    assert api("viewer").post(f"/suites/{slug}/proofs").status_code == 403
    assert api("runner").post(f"/suites/{slug}/proofs").status_code == 202
    found = api("viewer").get(f"/suites/{slug}/proofs").json()
    assert (found["suite"], found["version"], found["error"]) == (slug, 1, "")
    assert found["finished"]
    assert [(each["scenario"], each["seal"]) for each in found["scenarios"]] == [("create", "unproved")]


def test_a_pending_proof_is_not_requested_twice(api, project):
    version = make_suite(project)
    pending = SuiteProof.objects.create(suite_version=version)
    found = api("runner").post(f"/suites/{version.suite.slug}/proofs").json()
    assert (found["id"], found["finished"]) == (pending.pk, None)


def test_a_proofs_budget_is_stored(api, project):
    version = make_suite(project)
    SuiteProof.objects.all().delete()
    wrong = api("runner").post(f"/suites/{version.suite.slug}/proofs", {"max_usd": 0})
    assert wrong.status_code == 422
    found = api("runner").post(f"/suites/{version.suite.slug}/proofs", {"max_usd": 0.5}).json()
    assert found["max_usd"] == SuiteProof.objects.get().max_usd == 0.5
