"""Suites and guidance over REST."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evalhub.teams.models import AuditEvent
from scenarios.models import Guidance, Suite
from tests.builders import make_guidance, make_suite, make_target
from tests.greeting import EXISTS, greeting

SCENARIO = greeting(EXISTS).encode()


def bundle() -> SimpleUploadedFile:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("greet.yaml", SCENARIO)
        archive.writestr("templates/repo/README.md", "Hello.")
        archive.writestr("templates/repo/AGENTS.md", "Be kind.")
    return SimpleUploadedFile("greetings.zip", stream.getvalue())


def test_it_takes_a_bundle(api):
    response = api("author").upload("/suites", bundle())
    assert response.status_code == 201
    (taken,) = response.json()["suites"]
    assert (taken["suite"]["slug"], taken["version"], taken["new_version"]) == ("greetings", 1, True)
    assert taken["changes"]["added"] == ["greet"]
    assert Guidance.objects.get(pk=taken["guidance"]).files[0]["path"] == "AGENTS.md"


def test_the_same_bundle_is_the_same_version(api):
    author = api("author")
    author.upload("/suites", bundle())
    (again,) = author.upload("/suites", bundle()).json()["suites"]
    assert (again["version"], again["new_version"], again["changes"]["unchanged"]) == (1, False, ["greet"])


def test_it_lists_every_problem_of_a_file_with_its_line(api):
    broken = SCENARIO.replace(b"file_exists", b"file_exist").replace(b"  prompt: Say hello.\n", b"  {}\n")
    response = api("author").upload("/suites", SimpleUploadedFile("greet.yaml", broken))
    assert response.status_code == 422
    body = response.json()
    assert body["id"] == "files/refused"
    assert {problem["file"] for problem in body["problems"]} == {"greet.yaml"}
    assert all(problem["line"] and problem["what"].endswith(".") for problem in body["problems"])
    assert not Suite.objects.exists()


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("empty.yaml", b"", 422),
        ("not.zip", b"PK\x03\x04nonsense", 422),
        ("large.yaml", b"a: " + b"x" * (51 << 20), 413),
    ],
    ids=["empty", "broken archive", "too large"],
)
def test_it_refuses_a_file_that_is_not_a_suite(api, name, content, status):
    response = api("author").upload("/suites", SimpleUploadedFile(name, content))
    assert response.status_code == status
    assert response.json()["detail"].endswith(".")


def test_it_gives_a_version_with_its_scenarios_in_order(api, project):
    make_suite(project, ["zulu", "alpha"], name="Basics")
    found = api("viewer").get("/suites/basics/versions/1").json()
    assert [scenario["key"] for scenario in found["scenarios"]] == ["zulu", "alpha"]
    assert found["scenarios"][0]["content"]["prompt"] == "Do zulu."


def test_contents_are_redacted(api, project):
    make_suite(project, ["one"], name="Basics", prompt="Log in with password: hunter22")
    text = api("viewer").get("/suites/basics/versions/1").content.decode()
    assert "hunter22" not in text


def test_lists_come_in_pages(api, project):
    for number in range(5):
        make_suite(project, name=f"S{number}")
    client = api("viewer")
    seen, address = [], "/suites?limit=2"
    while address:
        page = client.get(address).json()
        seen += [suite["slug"] for suite in page["items"]]
        address = page["next"].removeprefix("/api/v1") if page["next"] else None
    assert seen == ["s4", "s3", "s2", "s1", "s0"]


def given(*files: tuple[str, str], suite: str = "basics") -> dict[str, Any]:
    documents = [{"path": path, "content": content} for path, content in files]
    return {"suite": suite, "name": "second", "files": documents}


def test_it_keeps_guidance_once(api, project):
    make_suite(project, name="Basics")
    author = api("author")
    first, again = (author.post("/guidance", given(("AGENTS.md", "Read."))) for _ in range(2))
    assert (first.status_code, first.json()["name"]) == (201, "second")
    assert first.json()["id"] == again.json()["id"]
    assert AuditEvent.objects.filter(action="guidance.create").count() == 1
    assert author.get(f"/guidance/{first.json()['id']}").json()["files"][0]["content"] == "Read."


def test_a_document_takes_the_place_of_the_suites_own(api, project):
    version = make_suite(project, name="Basics")
    own = make_guidance(version.suite)
    Guidance.objects.filter(pk=own.pk).update(files=[{"path": "AGENTS.md", "content": "old"}])
    version.suite.uploads.update(guidance=own)
    kept = api("author").post("/guidance", given(("good.md", "new"))).json()
    assert [(file["path"], file["content"]) for file in kept["files"]] == [("AGENTS.md", "new")]
    Guidance.objects.filter(pk=own.pk).update(
        files=[{"path": "AGENTS.md", "content": ""}, {"path": "CLAUDE.md", "content": ""}]
    )
    refused = api("author").post("/guidance", given(("good.md", "newer")))
    assert (refused.status_code, refused.json()["id"]) == (422, "guidance/path")
    assert (
        "several documents: AGENTS.md, CLAUDE.md. Give each document the `path`" in refused.json()["detail"]
    )


@pytest.mark.parametrize(
    ("body", "status", "id"),
    [
        (given(("../x", "a")), 422, "guidance/path"),
        (given(("a.md", "a"), ("./a.md", "b")), 422, "guidance/path"),
        (given(), 422, "api/invalid"),
        (given(("a.md", "a"), suite="nowhere"), 404, "api/not-found"),
    ],
    ids=["outside", "twice", "nothing", "no suite"],
)
def test_it_refuses_guidance_that_cannot_be_laid_down(api, project, body, status, id):
    make_suite(project, name="Basics")
    response = api("author").post("/guidance", body)
    assert (response.status_code, response.json()["id"]) == (status, id)


def test_guidance_is_listed_without_its_documents(api, project):
    make_guidance(make_suite(project, name="Basics").suite, "v1")
    (found,) = api("viewer").get("/guidance", suite="basics").json()["items"]
    assert found["name"] == "v1"
    assert "files" not in found


def test_strict_mode_refuses_uploads_and_runs_of_lax_eval_files(api):
    cases = SimpleUploadedFile("look.golden.json", b'[{"id": "one", "input": {"message": "Go."}}]')
    refused = api("author").upload("/suites?strict=true", cases)
    assert (refused.status_code, refused.json()["problems"][0]["id"]) == (422, "format/vacuous")
    cases.seek(0)
    assert api("author").upload("/suites", cases).status_code == 201
    make_target(Suite.objects.get().project)
    run = {"suites": [Suite.objects.get().slug]}
    answer = api("runner").post("/runs", {**run, "strict": True})
    assert answer.status_code == 422 and "Strict mode refuses it." in answer.json()["detail"]
    assert api("runner").post("/runs", run).status_code == 202
