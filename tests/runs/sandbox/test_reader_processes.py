"""Other people's files are read in processes with limits, and come out as if they had been read here."""

from __future__ import annotations

import io
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evalhub.lib.busy import TryLater
from runs.sandbox import reader_processes
from runs.sandbox.reader_processes import ReaderProcesses
from scenarios.bundles import Bundle, read_path
from scenarios.formats.problems import MOST_PROBLEMS, ScenarioFileError
from scenarios.reading import ReaderHere

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(path for path in (ROOT / "scenarios" / "examples").iterdir() if path.is_dir())
HERE = ReaderHere()
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


def suites(reader, bundle: Bundle):
    return reader.read_suites(bundle, command_pattern="", strict=False)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_suites_are_what_they_are_when_read_here(readers, folder):
    bundle = read_path(folder)
    try:
        here = suites(HERE, bundle)
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
    assert readers.read_upload("suite.zip", data) == HERE.read_upload("suite.zip", data)
    with pytest.raises(ScenarioFileError) as refused:
        readers.read_upload("suite.zip", data[:-40])
    with pytest.raises(ScenarioFileError) as here:
        HERE.read_upload("suite.zip", data[:-40])
    assert refused.value.problems == here.value.problems


def test_what_takes_too_long_is_refused_in_a_sentence(monkeypatch):
    # A reader that only waits, so that no file of today's has to take ten seconds.
    monkeypatch.setattr(reader_processes, "PROGRAM", "import time; time.sleep(60)  # {} {}")
    monkeypatch.setattr(reader_processes, "PATIENCE", 0.5)
    readers = ReaderProcesses()
    began = time.monotonic()
    with pytest.raises(ScenarioFileError) as refused:
        suites(readers, Bundle("greet", {"greet.yaml": b"a: 1"}))
    (problem,) = refused.value.problems
    assert problem.what == "The upload needs more than 10 s or 768 MB to read."
    assert time.monotonic() - began < 10
    assert readers.idle == []


def test_what_takes_too_much_memory_is_refused_and_the_next_upload_is_read():
    readers = ReaderProcesses(memory=128 << 20)
    large = Bundle("big", {"list.yaml": GOOD, "data.json": b"[" + b"0," * 900_000 + b"0]"})
    assert suites(HERE, large)
    with pytest.raises(ScenarioFileError) as refused:
        suites(readers, large)
    assert [each.id for each in refused.value.problems] == ["bundle/too-much-to-read"]
    assert suites(readers, Bundle("list", {"list.yaml": GOOD}))
    readers.close()


def test_who_finds_no_free_process_is_told_to_try_again(monkeypatch):
    monkeypatch.setattr(reader_processes, "PROGRAM", "import time; time.sleep(60)  # {} {}")
    monkeypatch.setattr(reader_processes, "WAIT", 0.2)
    monkeypatch.setattr(reader_processes, "PATIENCE", 2.0)
    readers = ReaderProcesses()
    found: list[type[Exception]] = []

    def read() -> None:
        try:
            suites(readers, Bundle("list", {"list.yaml": GOOD}))
        except (ScenarioFileError, TryLater) as error:
            found.append(type(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [TryLater, ScenarioFileError, ScenarioFileError]


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
    "aliases": {"a.yaml": b"a: &a [x, x]\n" + b"".join(b"a%d: &a%d [*a, *a]\n" % (n, n) for n in range(999))},
}


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
