"""`/annotations` reads and writes the notes on the time axis of trends."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Annotation
from tests.builders import make_member, make_project, make_run, make_suite


@pytest.fixture
def run(project):
    return make_run(make_suite(project, name="Basics"))


def test_a_run_is_annotated_on_its_day_in_its_suite(api, run):
    client = api("runner")
    made = client.post("/annotations", {"run": run.pk, "text": " Moved to\na new host. "})
    assert made.status_code == 201
    (listed,) = client.get("/annotations").json()["items"]
    assert listed == made.json()
    assert (listed["run"], listed["suite"], listed["text"]) == (run.pk, "basics", "Moved to a new host.")
    assert listed["day"] == run.created.date().isoformat()
    assert AuditEvent.objects.get(action="annotation.add").subject == "Moved to a new host."


def test_a_day_is_annotated_for_one_suite_or_for_all(api, run):
    client = api("author")
    make_suite(run.project, name="Other")
    for suite in ("", "basics", "other"):
        made = client.post("/annotations", {"day": "2026-11-03", "suite": suite, "text": f"For {suite}."})
        assert made.json()["suite"] == (suite or None)
    listed = client.get("/annotations", suite="basics").json()["items"]
    assert [each["text"] for each in listed] == ["For basics.", "For ."]


@pytest.mark.parametrize("given", [{}, {"run": 1, "day": "2026-11-03"}])
def test_it_takes_a_run_or_a_day(api, project, given):
    refused = api("runner").post("/annotations", {"text": "Note.", **given})
    assert (refused.status_code, refused.json()["detail"]) == (422, "Send either `run` or `day`.")


@pytest.mark.parametrize("text", ["", "  ", "x" * 201])
def test_a_text_has_1_to_200_characters(api, project, text):
    assert api("runner").post("/annotations", {"day": "2026-11-03", "text": text}).status_code == 422


def test_runs_and_annotations_of_other_projects_are_not_found(api, run):
    stranger = make_run(make_suite(make_project("other")))
    client = api("admin")
    assert client.post("/annotations", {"run": stranger.pk, "text": "Note."}).status_code == 404
    note = Annotation.objects.create(project=stranger.project, day="2026-11-03", text="Theirs.")
    assert client.delete(f"/annotations/{note.pk}").status_code == 404
    assert Annotation.objects.filter(pk=note.pk).exists()


@pytest.mark.parametrize(("role", "status"), [("runner", 403), ("author", 403), ("admin", 204)])
def test_only_its_author_or_an_admin_removes_it(api, run, role, status):
    by = make_member(run.project, "runner", "grace")
    note = Annotation.objects.create(project=run.project, run=run, day="2026-11-03", text="Note.", by=by)
    assert api(role).delete(f"/annotations/{note.pk}").status_code == status
    assert Annotation.objects.filter(pk=note.pk).exists() == (status == 403)


def test_its_author_removes_it(api, run):
    client = api("runner")
    made = client.post("/annotations", {"run": run.pk, "text": "Note."}).json()
    assert client.delete(f"/annotations/{made['id']}").status_code == 204
    assert AuditEvent.objects.get(action="annotation.remove").subject == "Note."
