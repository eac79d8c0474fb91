"""Runs travel between evalhubs: an archive is read back exactly, each run once, and shards become one run."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs.compare.comparison import find_incomparable
from runs.errors import RequestError
from runs.exchange.exports.document import run_document
from runs.exchange.exports.run_archive import run_archive
from runs.exchange.imports.import_results import import_merged, import_results
from runs.models import Artifact, CommandRecord, JudgingRecord, Run
from runs.results.files import artifacts
from scenarios.bundles import Bundle
from scenarios.formats.parsed import FixtureFile
from scenarios.imports import import_files
from scenarios.models import Suite, SuiteVersion
from scenarios.storing import store_guidance
from tests.builders import make_compared, make_project
from tests.runs.looking import failing, ran, suite

pytestmark = pytest.mark.django_db
GATES = b"evaluation: {gates: [{type: file_exists, path: out.txt}]}\n"
CHANGED = ("id", "launch", "url", "trigger", "by", "baseline", "suite_version")
"""What of a run is this evalhub's own, or only numbers its rows."""


def uploaded(project: Project, *, prompt: str = "Do") -> SuiteVersion:
    """Return the version of a suite of three scenarios, with guidance, as a folder holds it."""
    files = {
        f"{key}.yaml": f"name: {key}\ntask: {{prompt: {prompt} {key}}}\n".encode() + GATES for key in "abc"
    }
    return import_files(Bundle("notes", files), project=project, by=None)[0].version


def stored(version: SuiteVersion, **outcomes: str) -> Run:
    """Return a closed run with a transcript, commands, a judging and an artifact."""
    files = (FixtureFile("AGENTS.md", b"Be short."),)
    guidance, _ = store_guidance(version.suite, files, by=None, name="short")
    chosen = outcomes or dict.fromkeys("abc", "pass")
    run = make_compared(
        version, chosen, trials=2, guidance=guidance, branch="main", commit="c0ffee", tags=["nightly"]
    )
    trial = run.trial_set.first()
    assert trial is not None
    CommandRecord.objects.create(
        trial=trial, n=0, line="notes add", subcommand="add", exit_code=0, end="reported"
    )
    JudgingRecord.objects.create(
        trial=trial, score=0.75, passed=True, model="m", content={"reasoning": "Good."}
    )
    kept = artifacts.keep_content("transcript", b"$ notes add\ndone\n")
    Artifact.objects.create(trial=trial, **vars(kept))
    return Run.objects.get(pk=run.pk)


def brought(project: Project, content: bytes, file: str = "runs.zip") -> tuple[Run, ...]:
    return import_results(project, content, file, by=None)


def content_of(run: Run) -> dict[str, Any]:
    """Return a run's document without what is its evalhub's own."""
    document = run_document(run.pk)
    for trial in document["trials"]:
        del trial["id"]
    left_out = {"uuid", "measures", "scenarios", *CHANGED}
    return {
        **document,
        "run": {name: value for name, value in document["run"].items() if name not in left_out},
    }


def test_an_archive_is_read_back_exactly() -> None:
    original, other = stored(uploaded(make_project())), make_project("other")
    archive = run_archive([original.pk])
    (copy,) = brought(other, archive)
    assert content_of(copy) == content_of(original)
    assert copy.shown_id == str(original.uuid)
    assert copy.guidance is not None
    assert original.guidance is not None
    assert (copy.guidance.sha256, copy.guidance.name) == (original.guidance.sha256, "short")
    assert (copy.suite.format, copy.suite_version.sha256) == ("llm_tool_test", original.suite_version.sha256)
    assert (copy.started, copy.finished, copy.created) == (
        original.started,
        original.finished,
        original.created,
    )
    assert JudgingRecord.objects.get(trial__run=copy).content == {"reasoning": "Good."}
    assert CommandRecord.objects.get(trial__run=copy).line == "notes add"
    again = {name: zipfile.ZipFile(io.BytesIO(each)).read("evalhub.json") for name, each in (("before", archive), ("after", run_archive([copy.pk])))}  # fmt: skip
    assert again["before"] == again["after"]


def test_later_runs_of_the_same_files_are_compared_with_it() -> None:
    original, other = stored(uploaded(make_project())), make_project("other")
    (copy,) = brought(other, run_archive([original.pk]))
    version = uploaded(other)
    assert version == copy.suite_version
    later = make_compared(version, dict.fromkeys("abc", "fail"), trials=2)
    assert (later.baseline, find_incomparable(copy, later)) == (copy, {})


def test_it_is_stored_once_whatever_the_file() -> None:
    project = make_project()
    first, second = stored(uploaded(project)), stored(uploaded(project))
    other = make_project("other")
    (copy,) = brought(other, run_archive([first.pk]))
    assert brought(other, run_archive([first.pk])) == (copy,)
    both = brought(other, run_archive([first.pk, second.pk]))
    assert both[0] == copy
    assert Run.objects.filter(project=other).count() == 2
    assert brought(project, run_archive([first.pk])) == (first,)
    assert Run.objects.filter(project=project).count() == 2


def test_a_history_keeps_its_baselines_and_the_current_version() -> None:
    project = make_project()
    old = stored(uploaded(project, prompt="Make"))
    first = stored(uploaded(project))
    second = make_compared(first.suite_version, dict.fromkeys("abc", "fail"), trials=2)
    other = make_project("server")
    runs = brought(other, run_archive([old.pk, first.pk, second.pk]))
    assert [run.shown_id for run in runs] == [str(run.uuid) for run in (old, first, second)]
    assert runs[2].baseline == runs[1]
    upload = Suite.objects.get(project=other).uploads.first()
    assert upload is not None
    assert upload.suite_version.sha256 == first.suite_version.sha256


def test_an_older_version_does_not_put_a_suite_back() -> None:
    laptop, server = make_project("laptop"), make_project("server")
    old = stored(uploaded(laptop, prompt="Make"))
    current = uploaded(server)
    make_compared(current, dict.fromkeys("abc", "pass"))
    brought(server, run_archive([old.pk]))
    upload = current.suite.uploads.first()
    assert upload is not None
    assert upload.suite_version == current


def test_secrets_are_redacted_and_targets_cannot_run() -> None:
    original = stored(uploaded(make_project()))
    trial = original.trial_set.first()
    assert trial is not None
    trial.answer = "token ghp_" + "a1B2" * 9
    trial.save(update_fields=["answer"])
    (copy,) = brought(make_project("other"), run_archive([original.pk]))
    answer = copy.trial_set.get(scenario__key=trial.scenario.key, index=trial.index).answer
    assert answer == "token ghp_[REDACTED]"
    assert copy.target.is_imported


def repacked(archive: bytes, change: Any) -> bytes:
    """Return an archive with its entries changed by a function of name and content, left out where it returns None."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as before, zipfile.ZipFile(buffer, "w") as after:
        for name in before.namelist():
            content = change(name, before.read(name))
            if content is not None:
                after.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda name, content: content[:40] if name == "evalhub.json" else content, "evalhub.json can't be read"),
        (lambda name, content: None if name.startswith("trials/") else content, "it has 0 of 6 trials"),
        (lambda name, content: content.replace(b'"finished"', b'"running"'), "can't be read: "),
        (lambda name, content: content + b"!" if name.startswith("artifacts/") else content, "is damaged"),
        (lambda name, content: content.replace(b'"evalhub_archive": 1', b'"evalhub_archive": 9'), "has format 9"),
    ],
)  # fmt: skip
def test_a_damaged_archive_is_refused_and_nothing_stored(change: Any, sentence: str) -> None:
    original, other = stored(uploaded(make_project())), make_project("other")
    with pytest.raises(RequestError, match=sentence):
        brought(other, repacked(run_archive([original.pk]), change))
    assert not Run.objects.filter(project=other).exists()


def shards(version: SuiteVersion, **changes: Any) -> list[bytes]:
    """Return the archives of three jobs that each ran one scenario."""
    found = []
    for number, key in enumerate("abc", start=1):
        run = make_compared(version, {key: "fail" if key == "b" else "pass"}, trials=2, **changes)
        run.options = {**run.options, "shard": f"{number}/3"}
        run.save(update_fields=["options"])
        found.append(run_archive([run.pk]))
    return found


def test_shards_become_one_run() -> None:
    archives = shards(uploaded(make_project()))
    other = make_project("other")
    files = [(f"shard-{number}.zip", content) for number, content in enumerate(archives)]
    (run,) = import_merged(other, files, by=None)
    assert (run.trials, run.passed, run.failed, run.outcome, run.options["shard"]) == (6, 4, 2, "fail", "")
    assert list(run.trial_set.values_list("scenario__key", "index")) == [
        (key, n) for n in (0, 1) for key in "abc"
    ]
    assert import_merged(other, files[::-1], by=None) == (run,)
    assert Run.objects.filter(project=other).count() == 1


def test_a_missing_shard_is_named() -> None:
    archives = shards(uploaded(make_project()))
    files = [("1.zip", archives[0]), ("3.zip", archives[2])]
    with pytest.raises(RequestError, match="Shard 2 of 3 of notes on local is missing"):
        import_merged(make_project("other"), files, by=None)


def test_the_manifest_names_the_format() -> None:
    original = stored(uploaded(make_project()))
    manifest = json.loads(zipfile.ZipFile(io.BytesIO(run_archive([original.pk]))).read("evalhub.json"))
    assert manifest["evalhub_archive"] == 1
    assert manifest["runs"][0]["uuid"] == str(original.uuid)


@pytest.mark.django_db(transaction=True)
def test_a_verdict_keeps_the_levels_of_its_looks() -> None:
    version = suite()
    base = ran(version, failing(), trials=3)
    given = {"until_decided": True, "trials": 3, "max_trials": 30, "baseline": str(base.pk), "max_usd": 1.4}
    run = ran(version, failing("add", "list", cost_usd=0.1), **given)
    once = ran(version, failing("add", "list"), trials=3, baseline=str(base.pk))
    assert once.verdict == "regressed" != run.verdict
    archive = run_archive([base.pk, run.pk])
    copied = brought(make_project("other"), archive)[-1]
    assert (copied.verdict, copied.looks[-1]["against"]) == (run.verdict, copied.baseline_id)
    assert copied.looks[-1]["level"] == run.looks[-1]["level"]
    assert copied.trial_set.filter(round__gt=0).count() == run.trial_set.filter(round__gt=0).count()
