"""Other people's files are read in processes with limits, and come out as if they had been read here."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from msgspec import to_builtins

from evalhub.lib.busy import TryLater, asking_project
from evalhub.lib.storable_text import storable_parts
from runs.errors import RequestError
from runs.exchange.imports.import_sessions import session_tool
from runs.exchange.imports.session_files import read_session_file
from runs.exchange.results_files.archived_runs import RUN_COLUMNS, Archived
from runs.exchange.results_files.importers import read_results
from runs.sandbox import reader_processes
from runs.sandbox.reader_processes import ReaderProcesses
from scenarios.bundles import Bundle, read_path
from scenarios.formats.parsed import MOST_PROBLEMS, ScenarioFileError
from scenarios.reading import call_here, read_suites, read_upload, read_yaml_document, set_caller
from tests import session_files
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(path for path in (ROOT / "scenarios" / "examples").iterdir() if path.is_dir())
GOOD = b"""name: list-files
description: Lists the files.
target: {binary: ls}
task: {prompt: List the files.}
evaluation: {gates: [{type: file_exists, path: out.txt}]}
"""


@pytest.fixture(scope="module")
def readers() -> Iterator[ReaderProcesses]:
    readers = ReaderProcesses()
    yield readers
    readers.close()


@pytest.fixture(autouse=True)
def _read_here_afterwards() -> Iterator[None]:
    yield
    set_caller(call_here)


def call(caller, function, *arguments):
    """Return what a reader returns where `caller` calls it."""
    set_caller(caller)
    return function(*arguments)


def suites(caller, bundle: Bundle):
    return call(caller, read_suites, bundle)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_suites_are_what_they_are_when_read_here(readers, folder):
    bundle = read_path(folder)
    try:
        here = suites(call_here, bundle)
    except ScenarioFileError as error:
        with pytest.raises(ScenarioFileError) as refused:
            suites(readers, bundle)
        assert refused.value.problems == error.problems
        return
    assert suites(readers, bundle) == here


def test_settings_and_lints_come_with_the_suite(readers):
    config = b'[profiles.long]\ntools = ["local"]\nunknown = 1\n'
    (suite,) = suites(readers, Bundle("many", {"list.yaml": GOOD, "llm-tool-test-config.toml": config}))
    assert suite.settings["profiles"]["long"]["tools"] == ["local"]
    assert [lint.file for lint in suite.lints if "unknown" in lint.where] == ["llm-tool-test-config.toml"]


def test_an_archive_is_what_it_is_when_read_here(readers):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("suite/greet.yaml", GOOD)
        archive.writestr("suite/fixture/data.bin", bytes(range(256)) * 100)
    data = packed.getvalue()
    assert call(readers, read_upload, "suite.zip", data) == call(call_here, read_upload, "suite.zip", data)
    with pytest.raises(ScenarioFileError) as refused:
        call(readers, read_upload, "suite.zip", data[:-40])
    with pytest.raises(ScenarioFileError) as here:
        call(call_here, read_upload, "suite.zip", data[:-40])
    assert refused.value.problems == here.value.problems


FILES = ROOT / "tests" / "files"
TOOL = session_tool("taskmgr")
READ = {
    "a session": (read_session_file, "c.jsonl", session_files.claude(), TOOL, True),
    "a session with half a character": (
        read_session_file, "c.jsonl", session_files.claude().replace(b"Error: no", b"Error: \\ud83d no"), TOOL, True,
    ),
    "a broken session": (read_session_file, "c.jsonl", b"{", TOOL, False),
    "promptfoo's results": (read_results, "out.jsonl", (FILES / "promptfoo.jsonl").read_bytes()),
    "evalhub's results": (read_results, "baseline.json", (FILES / "ci_jobs" / "baseline.json").read_bytes()),
    "targets": (read_yaml_document, "targets.yaml", b"targets: [{name: a, provider: mock, n: 1.5, on: true}]"),
}  # fmt: skip


@pytest.mark.parametrize("asked", READ.values(), ids=READ)
def test_a_file_is_what_it_is_when_read_here(readers, asked):
    assert storable_parts(to_builtins(call(readers, *asked), enc_hook=str, order="sorted")) == storable_parts(
        to_builtins(call(call_here, *asked), enc_hook=str, order="sorted")
    )


def test_an_archive_of_runs_keeps_its_types_and_files(readers):
    columns = {"state": "finished", **dict.fromkeys(RUN_COLUMNS[1:])}
    run = {
        "uuid": "u",
        "target": "t",
        "columns": columns,
        "suite": dict.fromkeys(("slug", "name", "format", "sha256"), "s") | {"number": 1},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("evalhub.json", json.dumps({"evalhub_archive": 1, "runs": [run]}))
        archive.writestr("files/abc", b"\xff\x00")
    read = call(readers, read_results, "runs.zip", packed.getvalue())
    assert read == call(call_here, read_results, "runs.zip", packed.getvalue())
    assert isinstance(read.archived[0], Archived) and read.members["files/abc"] == b"\xff\x00"


def test_what_a_reader_refuses_is_refused_in_its_words(readers):
    with pytest.raises(RequestError, match="no results found"):
        call(readers, read_results, "other.json", b"{}")
    with pytest.raises(ScenarioFileError, match="more than 64 bits"):
        call(readers, read_yaml_document, "targets.yaml", b"a: " + b"9" * 30)


def test_what_takes_too_long_is_refused_in_a_sentence(monkeypatch):
    # A reader that only waits, so that no file of today's has to take ten seconds.
    monkeypatch.setattr(reader_processes, "PROGRAM", "import time; time.sleep(60)  # {} {}")
    monkeypatch.setattr(reader_processes, "PATIENCE", 0.5)
    readers = ReaderProcesses()
    began = time.monotonic()
    with pytest.raises(ScenarioFileError) as refused:
        suites(readers, Bundle("greet", {"greet.yaml": b"a: 1"}))
    (problem,) = refused.value.problems
    assert problem.what == "It needs more than 10 s or 768 MB to read."
    assert time.monotonic() - began < 10
    assert readers.idle == []


@pytest.mark.slow
def test_what_takes_too_much_memory_is_refused_and_the_next_upload_is_read():
    readers = ReaderProcesses(memory=128 << 20)
    large = Bundle("big", {"list.yaml": GOOD, "data.json": b"[" + b"0," * 900_000 + b"0]"})
    assert suites(call_here, large)
    with pytest.raises(ScenarioFileError) as refused:
        suites(readers, large)
    assert [each.id for each in refused.value.problems] == ["bundle/too-much-to-read"]
    assert suites(readers, Bundle("list", {"list.yaml": GOOD}))
    readers.close()


@pytest.mark.slow
def test_who_finds_no_free_process_is_told_to_try_again(monkeypatch):
    monkeypatch.setattr(reader_processes, "PROGRAM", "import time; time.sleep(60)  # {} {}")
    monkeypatch.setattr(reader_processes, "WAIT", 0.2)
    monkeypatch.setattr(reader_processes, "PATIENCE", 2.0)
    readers = ReaderProcesses()
    found: list[type[Exception]] = []

    set_caller(readers)

    def read() -> None:
        try:
            read_suites(Bundle("list", {"list.yaml": GOOD}))
        except (ScenarioFileError, TryLater) as error:
            found.append(type(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [TryLater, ScenarioFileError, ScenarioFileError]


def test_a_project_reads_one_file_at_a_time(monkeypatch):
    monkeypatch.setattr(reader_processes, "WAIT", 0.2)
    readers = ReaderProcesses()
    set_caller(readers)
    suites(readers, Bundle("list", {"list.yaml": GOOD}))
    (helper,) = readers.idle
    found: dict[str, type[Exception] | None] = {}

    def read(name: str, project: int) -> None:
        asking_project.set(project)
        try:
            read_suites(Bundle("list", {"list.yaml": GOOD}))
            found[name] = None
        except TryLater as error:
            found[name] = type(error)

    os.kill(helper.pid, signal.SIGSTOP)
    first = threading.Thread(target=read, args=("first", 1))
    first.start()
    until(lambda: not readers.idle)
    for name, project in (("the same project", 1), ("another", 2)):
        # In a thread of its own, as a request is.
        thread = threading.Thread(target=read, args=(name, project))
        thread.start()
        thread.join()
    os.kill(helper.pid, signal.SIGCONT)
    first.join()
    assert found == {"the same project": TryLater, "another": None, "first": None}
    readers.close()


def test_a_reader_ends_with_whoever_asked_it():
    readers = ReaderProcesses()
    suites(readers, Bundle("greet", {"greet.yaml": GOOD}))
    (helper,) = readers.idle
    process = psutil.Process(helper.pid)
    assert helper.stdin
    helper.stdin.close()
    process.wait(10)


DATA = b"[" + b"0," * 500_000 + b"0]"
LARGE = {
    "scenarios": {f"{n}.yaml": b"evalcases: [" + b"{}," * 60_000 + b"0]" for n in range(5)},
    "other files": {f"{n}.json": DATA for n in range(40)},
    "broken at the end": {f"{n:02}.json": DATA[:-1] for n in range(40)},
}


@pytest.mark.sampled(1)
@pytest.mark.hostile
@pytest.mark.parametrize("files", LARGE.values(), ids=LARGE)
def test_small_files_that_are_many_are_limited_together(files):
    readers = ReaderProcesses(seconds=1.0)
    began = time.monotonic()
    with pytest.raises(ScenarioFileError) as refused:
        suites(readers, Bundle("many", files))
    assert len(refused.value.problems) <= MOST_PROBLEMS
    assert time.monotonic() - began < 20
    readers.close()
