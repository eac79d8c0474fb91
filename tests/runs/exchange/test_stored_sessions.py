"""People's sessions in the warehouse: layer 1 without outcomes."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from msgspec import structs

from evalhub.teams.models import Project
from evaluators.tool_use.interaction import RULES_VERSION
from evaluators.transcripts.sessions import IMPORTERS
from runs.compare.baselines import set_baseline
from runs.errors import RequestError
from runs.exchange.imports.import_sessions import SortedSessions, help_pages, session_tool, store_sessions
from runs.exchange.imports.session_files import ReadSessions, read_paths
from runs.launch.request import Request, plan
from runs.models import FlagConfusion, Run, RunMeasure, SearchEntry, SubcommandMeasure, ToolHelp, Trial
from runs.results.run_filters import RunListFilters
from runs.results.usage import read_usage
from tests.builders import make_suite
from tests.session_files import STEPS, claude, codex, opencode, otlp

pytestmark = pytest.mark.django_db
TOOL = session_tool("taskmgr")


def bring(
    project: Project, *paths: Path, whole: bool = False
) -> tuple[Run | None, SortedSessions, ReadSessions]:
    read = read_paths(paths, TOOL, whole=whole).with_flags(help_pages(project, TOOL))
    run, found = store_sessions(project, TOOL, read.sessions, read.problems, by=None)
    return run, found, read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "sessions"
    (root / "deep").mkdir(parents=True)
    (root / "one.jsonl").write_bytes(claude())
    (root / "deep/two.jsonl").write_bytes(codex())
    (root / "deep/three.json").write_bytes(opencode())
    (root / "four.json").write_bytes(otlp())
    return root


def test_sessions_become_one_closed_run_without_outcomes(project: Project, folder: Path) -> None:
    (folder / "other.jsonl").write_bytes(claude("c-2", steps=[("git status", 0, "clean")]))
    run, found, read = bring(project, folder)
    assert run and (len(found.new), read.without, read.problems) == (4, 1, [])
    run.refresh_from_db()
    assert (run.trigger, run.state, run.outcome, run.verdict) == ("import", "finished", "", "")
    assert (run.trials, run.passed, run.failed, run.errors, run.baseline) == (4, 0, 0, 0, None)
    assert {trial.outcome for trial in run.trial_set.all()} == {""}
    names = set(RunMeasure.objects.filter(run=run).values_list("measure__layer", "measure__name"))
    assert ("interaction", "error_rate") in names
    assert names.isdisjoint({("trial", "pass"), ("interaction", "completed")})
    assert run.seconds is None and run.started and run.started.month == 11


def test_layer_1_usage_and_search_work_on_sessions(project: Project, folder: Path) -> None:
    run, _, _ = bring(project, folder)
    create = SubcommandMeasure.objects.get(run=run, scenario=None, subcommand="create")
    assert (create.calls, create.errors, create.helps, create.tries) == (8, 4, 4, {"2": 4})
    shown = read_usage(project, RunListFilters())
    assert [row.name for row in shown.subcommands] == ["create", "list"]
    assert [(row.typed, row.meant, row.trials) for row in shown.confusions] == [("--fmt", "--format", 4)]
    entries = list(SearchEntry.objects.filter(trial__run=run))
    assert len(entries) == 4 and all("taskmgr create" in each.commands for each in entries)
    assert all("no such option" in each.outputs for each in entries)


def test_stored_help_pages_explain_failed_calls(project: Project, tmp_path: Path) -> None:
    ToolHelp.objects.create(
        project=project,
        binary="./taskmgr",
        subcommand="create",
        text="Usage: x\nOptions:\n  --format F  how\n",
    )
    (tmp_path / "s.jsonl").write_bytes(claude(steps=STEPS[2:3]))
    run, _, _ = bring(project, tmp_path)
    assert FlagConfusion.objects.get(run=run).meant == "--format"


def test_the_same_session_is_stored_once(project: Project, folder: Path) -> None:
    (folder / "copy.jsonl").write_bytes(claude())
    first, found, _ = bring(project, folder, folder / "one.jsonl")
    assert first and len(found.new) == 4
    again, found, _ = bring(project, folder)
    assert again is None and found.known == 4
    assert Run.objects.count() == 1


def test_a_continued_session_replaces_its_beginning(project: Project, folder: Path) -> None:
    first, _, _ = bring(project, folder)
    (folder / "one.jsonl").write_bytes(claude(steps=[*STEPS, ("taskmgr list", 0, "")]))
    second, found, _ = bring(project, folder)
    assert first and second and (len(found.continued), found.known) == (1, 3)
    first.refresh_from_db()
    assert (first.trials, second.trials, Trial.objects.count()) == (3, 1, 4)
    assert SubcommandMeasure.objects.get(run=first, scenario=None, subcommand="list").calls == 3
    assert SubcommandMeasure.objects.get(run=second, scenario=None, subcommand="list").calls == 2


def test_a_session_that_older_rules_counted_is_replaced(project: Project, folder: Path) -> None:
    first, _, _ = bring(project, folder)
    trial = Trial.objects.order_by("pk").first()
    assert first and trial
    trial.detail = {**trial.detail, "interaction": {**trial.detail["interaction"], "rules": 2}}
    trial.save()
    second, found, _ = bring(project, folder)
    assert second and (len(found.continued), found.known) == (1, 3)
    assert {each.detail["interaction"]["rules"] for each in Trial.objects.all()} == {RULES_VERSION}
    assert not Trial.objects.filter(pk=trial.pk).exists()


def test_sessions_never_become_baselines_or_run(project: Project, folder: Path) -> None:
    run, _, _ = bring(project, folder)
    assert run
    with pytest.raises(RequestError, match="holds sessions"):
        set_baseline(run, by=None)
    with pytest.raises(RequestError, match="can't run"):
        plan(project, Request(suite_versions=(run.suite_version,)))


def test_a_suite_of_the_same_name_is_not_touched(project: Project, folder: Path) -> None:
    make_suite(project, name="Sessions of taskmgr")
    with pytest.raises(RequestError, match="already has scenarios"):
        bring(project, folder)
    assert not Run.objects.exists()


def test_nothing_outside_the_folder_is_read(project: Project, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(claude("secret"))
    (tmp_path / "far").mkdir()
    (tmp_path / "far/x.jsonl").write_bytes(claude("far"))
    (folder / "link.jsonl").symlink_to(outside)
    (folder / "far").symlink_to(tmp_path / "far")
    os.mkfifo(folder / "pipe.jsonl")
    _, found, read = bring(project, folder)
    assert sorted(each.id for each in found.new) == ["c-1", "o-1", "ses_1", "x-1"]
    assert read.problems == [f"{folder}/link.jsonl: a link out of the folder; not read."]


def test_broken_files_are_named_and_the_rest_is_imported(project: Project, folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(b"hello\n")
    (folder / "one.jsonl").write_bytes(claude() + b"{cut off")
    run, found, _ = bring(project, folder, folder / "nothing")
    assert run and len(found.new) == 4
    known = f"Known: {', '.join(importer.agent for importer in IMPORTERS)}."
    assert sorted(run.warnings) == [
        f"{folder}/a.jsonl: line 1: not a session file of a known agent. {known}",
        f"{folder}/nothing: there is no such file or folder. Check the path.",
        f"{folder}/one.jsonl: line 15: not a JSON object; skipped.",
    ]


@pytest.mark.parametrize(("binary", "pattern"), [("", ""), (" ", "x (\\w+)"), ("x", "(")])
def test_a_tool_without_name_or_with_a_bad_pattern_is_refused(binary: str, pattern: str) -> None:
    with pytest.raises(RequestError):
        session_tool(binary, pattern)


def test_a_session_whose_lines_were_not_all_read_has_no_rates(project: Project) -> None:
    read = ReadSessions()
    read.add(
        "s.jsonl",
        io.BytesIO(claude(steps=[("./taskmgr create", 0, "ok"), ('./taskmgr {"a": 1}', 0, "ok")])),
        TOOL,
        whole=False,
    )
    run, _ = store_sessions(project, TOOL, [structs.replace(read.sessions[0], unread=3)], by=None)
    assert run
    interaction = run.trial_set.get().detail["interaction"]
    assert (interaction["unread"], interaction["error_rate"], interaction["known"]) == (3, None, 2)
