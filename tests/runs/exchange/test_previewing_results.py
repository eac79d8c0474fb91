"""What importing a file would store is shown before, and nothing is stored by showing it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.apps import apps

from runs.errors import RequestError
from runs.exchange.exports.run_archive import run_archive
from runs.exchange.imports.import_results import import_results
from runs.exchange.imports.preview_results import PreviewedRun, preview_merged, preview_results
from runs.exchange.results_files.importers import IMPORTERS, pack_folder
from runs.models import Run
from tests.builders import make_project
from tests.commands.calling import call
from tests.runs.exchange import test_importing, test_importing_skill_creator, test_results_folders
from tests.runs.exchange.test_run_archives import shards, stored, uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
FILES = Path(__file__).parents[2] / "files"


def archive(at: Path) -> bytes:
    content = run_archive([stored(uploaded(make_project("theirs")), a="pass", b="fail").pk])
    assert isinstance(content, bytes)
    return content


# fmt: off
SPECIMENS: dict[str, tuple[str, Callable[[Path], bytes]]] = {
    "evalhub": ("runs.zip", archive),
    "tool-forge": ("result.json", lambda at: json.dumps(test_importing.suite_result()).encode()),
    "promptfoo": ("one.jsonl", lambda at: (FILES / "promptfoo.jsonl").read_bytes()),
    "skill-creator": ("benchmark.json", lambda at: json.dumps(test_importing_skill_creator.benchmark()).encode()),
    "llm-tool-test": ("results.zip", lambda at: pack_folder(test_results_folders.folder(at))),
    "AgentV": ("index.jsonl", lambda at: b'{"test_id": "one", "score": 1.0}\n{"test_id": "two", "score": 0.1}\n'),
    "Inspect": ("log.eval", lambda at: (FILES / "inspect/capitals.eval").read_bytes()),
    "JUnit": ("pytest.xml", lambda at: (FILES / "junit/pytest.xml").read_bytes()),
}
# fmt: on
"""A file of each program: its name, and what makes its content."""


def rows() -> dict[str, int]:
    return {model._meta.label: model.objects.count() for model in apps.get_models()}


def figures(run: PreviewedRun | Run) -> tuple[object, ...]:
    counts = (run.trials, run.passed, run.failed, run.errors, run.cancelled)
    return (str(run.suite), run.model, *counts, run.cost_usd)


def test_every_importer_has_a_specimen() -> None:
    assert set(SPECIMENS) == {"evalhub", *(each.name for each in IMPORTERS)}


@pytest.mark.parametrize("program", SPECIMENS)
def test_a_preview_shows_what_the_import_stores_and_stores_nothing(program: str, tmp_path: Path) -> None:
    name, make = SPECIMENS[program]
    content, project = make(tmp_path), make_project()
    before = rows()
    shown = preview_results(project, content, name)
    assert rows() == before
    assert (shown.program, shown.imported, shown.new) == (program, (), len(shown.runs))
    assert all(each.is_new_suite and each.is_new_target for each in shown.runs)

    runs = import_results(project, content, name, by=None)
    assert sorted(map(figures, shown.runs)) == sorted(map(figures, runs))
    assert [len(each.new_scenarios) for each in shown.runs] == [each.scenarios for each in shown.runs]
    for each in shown.runs:
        (run,) = (run for run in runs if run.target.name == each.target)
        assert run.trial_set.values("scenario").distinct().count() == each.scenarios
        assert run.trial_set.exclude(transcript=None).count() == each.transcripts

    again = preview_results(project, content, name)
    assert (again.imported, again.new) == (tuple(run.pk for run in runs), 0)
    assert again.seal != shown.seal
    assert all(
        each.suite_version and not each.new_scenarios and not each.is_new_target for each in again.runs
    )


def test_more_scenarios_than_the_suite_has_are_named() -> None:
    project = make_project()
    cases = test_importing.suite_result()["cases"]
    (first,) = test_importing.stored(test_importing.suite_result(cases=cases[:2]), project)
    content = json.dumps(test_importing.suite_result(runId="a-2", baselineRunId="a-1")).encode()
    (shown,) = preview_results(project, content, "more.json").runs
    assert (shown.is_new_suite, shown.suite_version, shown.new_scenarios) == (False, None, ("w-3",))
    assert (shown.baseline, shown.is_new_target) == (first.pk, False)
    assert shown.notes == ("Registry has grown.",)


def test_a_run_that_another_file_brought_is_named() -> None:
    project = make_project()
    (run,) = test_importing.stored(test_importing.suite_result(), project)
    content = json.dumps(test_importing.suite_result(stale=True)).encode()
    shown = preview_results(project, content, "again.json")
    assert (shown.imported, shown.new, shown.runs[0].stored) == ((), 0, run.pk)


def test_merged_shards_are_shown_as_one_run() -> None:
    archives = [("shard.zip", each) for each in shards(uploaded(make_project("theirs")))]
    project = make_project()
    before = rows()
    shown = preview_merged(project, archives)
    assert rows() == before
    (run,) = shown.runs
    assert (shown.file, run.scenarios) == ("shard.zip, shard.zip, shard.zip", 3)


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(RequestError, match=r"x\.json: no results found"):
        preview_results(make_project(), b"{}", "x.json")


def test_the_command_prints_a_preview_and_stores_nothing(tmp_path: Path) -> None:
    make_project("default")
    file = tmp_path / "result.json"
    file.write_text(json.dumps(test_importing.suite_result()))
    before = rows()
    shown = call("import_results", str(file), "--dry-run").out
    assert "result.json: tool-forge\n  get_weather on http://localhost:3000/chat\n" in shown
    assert "    Trials: 3 of 3 scenarios\n    Outcomes: 1 passed, 1 failed, 1 error\n" in shown
    assert "    ! Registry has grown.\n" in shown
    assert "1 run to import. Nothing was stored.\n" in shown
    document = call("import_results", str(file), "--dry-run", "--json").document
    assert (document["runs"], document["previews"][0]["runs"][0]["failed"]) == ([], 1)
    assert rows() == before
    call("import_results", str(file))
    assert "0 runs to import. Imported before as run " in call("import_results", str(file), "--dry-run").out
