"""The page that imports people's sessions, and the pages that show them."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Run, Trial
from scenarios.formats import parse_files
from tests.builders import make_project, make_run
from tests.session_files import claude, codex
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ADDRESS = "/p/tools/runs/sessions/"


def post(client, *contents, **given):
    files = [SimpleUploadedFile(f"s{n}.jsonl", content) for n, content in enumerate(contents)]
    return client.post(ADDRESS, {"tool": "taskmgr", "file": files, **given})


def preview_of(response) -> str:
    return response.content.decode().split('name="preview" value="')[1].split('"')[0]


@pytest.fixture
def run(signed_in, project) -> Run:
    client = signed_in("author")
    client.post(ADDRESS, {"preview": preview_of(post(client, claude(), codex(), whole="on"))})
    return Run.objects.get()


def test_an_upload_is_shown_before_it_is_stored(signed_in, project):
    client = signed_in("author")
    response = post(client, claude(), codex(), b"hello")
    page = parse(response)
    assert "2 sessions with taskmgr" in page and "s2.jsonl: line 1: not a session file" in page
    row = page.table("Commands of c-1").row("taskmgr create --fmt json x")
    assert (row.cell("Exit code").text, row.cell("First error line").text) == ("2", "no such option: --fmt")
    assert "abcdef123456" not in page and "my notes" not in page
    assert not Run.objects.exists()
    stored = parse(client.post(ADDRESS, {"preview": preview_of(response)}, follow=True))
    assert "Imported 2 sessions as run" in stored and "They have no gates" not in stored
    assert "they count in no pass rate and are not compared" in stored
    assert "already imported" in parse(post(client, claude()))


MENTIONING = (
    ("which taskmgr", 0, "/usr/bin/taskmgr"),
    ("./taskmgr list | head -1", 0, "1 Write the docs"),
    ("./taskmgr add x; true", 0, "taskmgr: error: no such task"),
)


def test_a_preview_says_what_is_unknown_and_not_counted(signed_in, project):
    page = parse(post(signed_in("author"), claude(steps=MENTIONING)))
    assert "2 commands, 0 failed, 1 mentioned, not counted" in page
    table = page.table("Commands of c-1")
    assert table.row("taskmgr list").cell("Exit code").text == "unknown"
    row = table.row("taskmgr add x")
    said = (row.cell("Exit code").text, row.cell("First error line").text)
    assert said == ("unknown printed an error", "no such task")


def test_a_changed_preview_is_refused(signed_in, project):
    client = signed_in("author")
    token = preview_of(post(client, claude()))
    assert "no longer valid" in parse(client.post(ADDRESS, {"preview": token[:-2]}))
    stranger = signed_in("author", of=make_project("other"))
    refused = stranger.post("/p/other/runs/sessions/", {"preview": token})
    assert "another project" in parse(refused)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tool": ""}, "Name the tool"),
        ({"file": []}, "Choose a session file"),
        ({"pattern": "("}, "The pattern is not usable"),
    ],
)
def test_a_wrong_upload_is_a_sentence(signed_in, project, given, sentence):
    response = post(signed_in("author"), claude(), **given)
    assert sentence in parse(response)


def test_viewers_do_not_import(signed_in, project):
    assert post(signed_in("viewer"), claude()).status_code == 403


def test_sessions_are_labelled_everywhere(signed_in, run):
    client = signed_in("runner")
    (row,) = parse(client.get("/p/tools/runs/")).table("Runs").rows
    assert row.cell("State").text == "sessions" and row.cell("Passed").text == "–"
    page = parse(client.get(f"/p/tools/runs/{run.pk}/"))
    assert "2 sessions that people had with an agent" in page
    assert page.table("Sessions").row("Session 1").cell("Commands").text == "5"
    assert "Mark as baseline" not in page and "All trials passed" not in page
    trial = Trial.objects.order_by("pk")[0]
    page = parse(client.get(f"/p/tools/trials/{trial.pk}/"))
    assert "A session that a person had with an agent" in page and "Claude Code, session c-1" in page
    assert "Gates" not in page.headings


def test_pages_work_with_sessions_alone(signed_in, run):
    client = signed_in()
    for page in (
        "",
        *["runs/", "trends/", "usage/", "suites/", "suites/sessions-of-taskmgr/", "search/?q=create"],
    ):
        assert client.get(f"/p/tools/{page}").status_code == 200, page


def test_sessions_are_not_compared(signed_in, run, version):
    assert "holds sessions" in parse(
        signed_in().get("/p/tools/compare/", {"runs": f"{run.pk},{make_run(version).pk}"})
    )


def test_a_failing_stretch_becomes_a_draft(signed_in, run):
    trial = Trial.objects.order_by("pk")[0]
    client = signed_in()
    links = parse(client.get(f"/p/tools/trials/{trial.pk}/")).links
    page = parse(client.get(links["Draft a scenario"]))
    assert "taskmgr create --fmt json x" in page
    text = client.get(links["Draft a scenario"], {"download": 1}).content
    assert b"Please create a task, my mail is [REDACTED_EMAIL]" in text
    assert text.startswith(b"# yaml-language-server: $schema=http")
    assert text.splitlines()[0].endswith(b"/schemas/llm-tool-test.json")
    (suite,) = parse_files({"draft.yaml": text}, name="draft")
    (spec,) = suite.scenarios
    assert spec.criteria.tool and spec.criteria.tool.binary == "taskmgr"
    assert [lint.id for lint in suite.lints] == ["format/to-fill-in"]


def test_a_long_session_gives_the_first_drafts_quickly(signed_in, project):
    client = signed_in("author")
    steps = [("./taskmgr create x", number % 2, "done") for number in range(8_000)]
    client.post(ADDRESS, {"preview": preview_of(post(client, claude(steps=steps), whole="on"))})
    began = process_time()
    page = parse(client.get(f"/p/tools/trials/{Trial.objects.get().pk}/draft/?stretch=4000"))
    assert process_time() - began < 5
    assert "100: taskmgr create x" in page
    assert "101: taskmgr create x" not in page
    assert "Please create a task" in page


def test_the_preview_counts_what_only_mentions_the_tool(signed_in, project):
    client = signed_in("author")
    called = claude("c-1", [("./taskmgr list", 0, "ok"), ("grep taskmgr README.md", 0, "taskmgr")])
    without = claude("c-2", [("cat taskmgr.log", 0, "x"), ("devbox run taskmgr list", 0, "x")])
    page = parse(post(client, called, without))
    assert "1 mentioned, not counted" in page
    assert "1 session without taskmgr skipped" in page and "mentioned it and" in page
    done = (
        Run.objects.count(),
        parse(client.post(ADDRESS, {"preview": preview_of(post(client, called))}, follow=True)),
    )
    assert done[0] == 0 and "1 command mentions the tool and was not counted" in done[1]


def test_the_preview_leaves_out_what_a_fork_copied(signed_in, project):
    client = signed_in("author")
    folder = Path(__file__).parents[2] / "files/sessions/history-written-twice/fork"
    first, fork = ((folder / f"{name}.jsonl").read_bytes() for name in ("a1", "a2"))
    page = parse(post(client, first, fork, tool="mytool"))
    assert "1 session with mytool" in page
    assert "s1.jsonl: 3 calls are copied from s0.jsonl and counted there." in page
    client.post(ADDRESS, {"preview": preview_of(post(client, first, tool="mytool"))})
    assert "3 calls are copied from s0.jsonl and counted there." in parse(post(client, fork, tool="mytool"))
