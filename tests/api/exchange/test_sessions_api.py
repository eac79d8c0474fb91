"""People's sessions over REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Run
from tests.session_files import claude, opencode


def bring(author: Any, *contents: bytes, **given: Any) -> Any:
    files = [SimpleUploadedFile(f"s{n}.json", content) for n, content in enumerate(contents)]
    return author.client.post("/api/v1/sessions", {"file": files, "tool": "taskmgr", **given})


def test_a_dry_run_shows_what_would_be_kept(api: Any) -> None:
    response = bring(api("author"), claude(), opencode(), b"hello", dry_run=True)
    assert response.status_code == 201
    found = response.json()
    assert (found["run"], found["new"], [each["id"] for each in found["sessions"]]) == (
        None,
        2,
        ["c-1", "ses_1"],
    )
    failed = {
        "failed": True,
        "end": "reported",
        "line": "taskmgr create --fmt json x",
        "exit_code": 2,
        "error": "no such option: --fmt",
    }
    assert found["sessions"][0]["commands"][2] == failed
    assert found["problems"][0].startswith("s2.json: line 1: not a session file")
    assert not Run.objects.exists()


@pytest.mark.parametrize("field", ["tool", "pattern"])
def test_what_no_database_keeps_is_refused(api: Any, field: str) -> None:
    response = bring(api("author"), claude(), **{field: "a\0"})
    assert response.status_code == 422
    (problem,) = response.json()["problems"]
    assert problem["where"].endswith(field) and "NUL" in problem["what"]


def test_sessions_are_stored_once(api: Any) -> None:
    author = api("author")
    run = bring(author, claude()).json()["run"]
    (listed,) = author.get("/runs").json()["items"]
    assert (listed["id"], listed["suite"], listed["trigger"], listed["outcome"]) == (
        run,
        "sessions-of-taskmgr",
        "import",
        None,
    )
    (trial,) = author.get(f"/runs/{run}/trials").json()["items"]
    assert trial["outcome"] in ("", None)
    again = bring(author, claude()).json()
    assert (again["run"], again["known"]) == (None, 1)


@pytest.mark.parametrize(
    ("given", "status"), [({"tool": ""}, 422), ({"pattern": "("}, 422), ({"dry_run": "x"}, 422)]
)
def test_wrong_input_is_refused(api: Any, given: dict[str, str], status: int) -> None:
    assert bring(api("author"), claude(), **given).status_code == status
