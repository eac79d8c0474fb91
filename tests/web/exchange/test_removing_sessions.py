"""Sessions that never called their tool are found and removed with everything stored of them."""

from __future__ import annotations

import io

import pytest
from msgspec import structs

from evalhub.teams.models import AuditEvent, Project
from evaluators.model import Command, Event, Transcript
from evaluators.transcripts.sessions.kept import KeptSession
from runs.engine.stored_trials.recounting import recount
from runs.exchange.imports.import_sessions import session_tool, store_sessions
from runs.exchange.imports.session_files import ReadSessions
from runs.models import CommandRecord, ImportedSession, Run, SearchEntry, SubcommandMeasure, TranscriptRecord
from runs.models.trial import transcript_row
from tests.builders import make_project
from tests.commands.calling import call
from tests.session_files import claude
from tests.web.screen import parse

pytestmark = pytest.mark.django_db
TOOL = session_tool("taskmgr")
PRIVATE = 'Edit {"file_path":"/home/ann/diary.md","new_string":"I was dismissed"}'


def without_tool(id: str) -> KeptSession:
    """Return a session as an earlier release kept it, with other tool calls as commands."""
    lines = (PRIVATE, 'Read {"file_path":"/home/ann/diary.md"}', "TodoRead")
    commands = tuple(Command(n, line, line.partition(" ")[0], 0, event=2 * n) for n, line in enumerate(lines))
    events = [
        event
        for n, line in enumerate(lines)
        for event in (Event("tool_call", str(n), "shell", line), Event("tool_result", str(n), exit_code=0))
    ]
    return KeptSession(id, id, "claude", f"{id}.jsonl", commands, Transcript(tuple(events), source="events"))


def with_tool() -> KeptSession:
    read = ReadSessions()
    steps = [("./taskmgr create", 0, "ok"), ('./taskmgr {"a": 1}', 0, "ok")]
    read.add("s.jsonl", io.BytesIO(claude("c-9", steps)), TOOL, whole=False)
    return read.sessions[0]


def test_a_session_whose_lines_were_not_all_read_has_no_rates() -> None:
    made, _ = store_sessions(make_project(), TOOL, [structs.replace(with_tool(), unread=3)], by=None)
    assert made
    interaction = made.trial_set.get().detail["interaction"]
    assert (interaction["unread"], interaction["error_rate"], interaction["known"]) == (3, None, 2)


@pytest.fixture
def run() -> Run:
    project = Project.objects.filter(slug="tools").first() or make_project()
    made, _ = store_sessions(project, TOOL, [without_tool("a"), with_tool(), without_tool("b")], by=None)
    assert made
    return made


def test_the_command_lists_before_it_removes(run: Run) -> None:
    listed = call("remove_sessions")
    assert "2 sessions never called the tool. Remove with --remove." in listed.out
    assert f"run {run.pk}, Sessions of taskmgr: 2 sessions without the tool" in listed.out
    assert "Backups made before still hold them" in listed.out
    assert run.trial_set.count() == 3
    document = call("remove_sessions", "--json").document
    assert (document["removed"], document["sessions"]) == (False, 2)


def test_nothing_of_them_stays(run: Run) -> None:
    assert SearchEntry.objects.filter(commands__contains="dismissed").exists()
    done = call("remove_sessions", "--remove")
    assert "Removed 2 sessions, also from search and usage." in done.out
    assert not SearchEntry.objects.filter(commands__contains="dismissed").exists()
    assert "No trial contains" in call("search", "dismissed").out
    assert not CommandRecord.objects.filter(line__contains="diary").exists()
    kept = run.trial_set.get()
    assert {each.trial_id for each in TranscriptRecord.objects.all()} == {kept.pk}
    assert ImportedSession.objects.get().trial_id == kept.pk
    assert not SubcommandMeasure.objects.filter(run=run, subcommand="Edit").exists()
    run.refresh_from_db()
    assert run.trials == 1
    event = AuditEvent.objects.get(action="sessions.remove")
    assert event.detail["sessions"] == 2
    assert call("remove_sessions").out.strip() == "Every imported session called its tool."


def test_whole_sessions_are_found_after_a_recount_too(run: Run) -> None:
    trial = run.trial_set.order_by("pk").first()
    assert trial is not None
    trial.detail["session"]["whole"] = True
    del trial.detail["interaction"]["rules"]
    trial.save()
    edit = Event("tool_call", "1", "Edit", input={"new_string": "I was dismissed"})
    row = transcript_row(trial.pk, Transcript((edit, Event("tool_result", "1")), source="events"))
    TranscriptRecord.objects.filter(trial=trial).update(**{k: v for k, v in row.items() if k != "trial"})
    Run.objects.update(recounted=0)
    assert recount().trials == 1 and not trial.commands.exists()
    assert "2 sessions never called the tool" in call("remove_sessions").out


def test_a_pattern_whose_subcommand_is_the_whole_command_is_the_tools(run: Run) -> None:
    tool = session_tool("taskmgr", r"(taskmgr.*)")
    kept = structs.replace(without_tool("c"), commands=(Command(0, "taskmgr", "taskmgr", 0, event=0),))
    store_sessions(run.project, tool, [kept], by=None)
    assert "2 sessions never called the tool" in call("remove_sessions").out


def test_the_runs_page_offers_it(signed_in, project: Project, run: Run) -> None:
    address = f"/p/tools/runs/{run.pk}/"
    viewer = signed_in("viewer")
    page = parse(viewer.get(address)).region("Sessions without the tool")
    assert "2 sessions never called the tool" in page and "Backups made before still hold them" in page
    assert page.buttons == [] and viewer.post(f"{address}sessions/remove/").status_code == 403
    author = signed_in("author")
    assert "Remove 2 sessions" in parse(author.get(address)).buttons
    done = parse(author.post(f"{address}sessions/remove/", follow=True))
    assert "Removed 2 sessions." in done and "never called the tool" not in done
    assert "Every session of this run called its tool" in parse(
        author.post(f"{address}sessions/remove/", follow=True)
    )
