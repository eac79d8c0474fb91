"""Files that commands write: where they cannot be, and where something that isn't a file lies."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from evalhub.teams.access import default_project
from runs.models import Launch, Run
from tests.builders import make_run, make_suite, make_target
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.fixture
def run() -> Run:
    return make_run(make_suite(default_project(), name="small"))


@pytest.mark.parametrize(
    "option", ["--json-file", "--junit-file", "--summary-file", "--output-dir", "--dump-traces"]
)
def test_a_run_does_not_begin_where_its_files_could_not_be_written(tmp_path: Path, option: str) -> None:
    make_target(default_project(), name="one")
    make_suite(default_project(), name="small")
    (tmp_path / "file").write_text("")
    place = f"{tmp_path}/file/below"
    ended = call("run_scenarios", "small", "--target", "one", "--now", option, place)
    assert ended.code == 2
    assert ended.err.startswith(place)
    assert "can't be written: " in ended.err
    assert not Launch.objects.exists()


def test_an_export_over_a_folder_is_refused_and_leaves_nothing(tmp_path: Path, run: Run) -> None:
    (tmp_path / "folder").mkdir()
    ended = call("export_run", str(run.pk), "--output", str(tmp_path / "folder"))
    sentence = f"{tmp_path}/folder can't be written: Is a directory. Use another path."
    assert (ended.code, ended.err.strip()) == (2, sentence)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_a_link_stays_one(tmp_path: Path, run: Run) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    assert call("export_run", str(run.pk), "--output", str(tmp_path / "link.json")).code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert f'"id": {run.pk}' in (tmp_path / "real.json").read_text()


def test_special_files_are_written_to_and_stay(tmp_path: Path, run: Run) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert call("export_run", str(run.pk), "--output", str(pipe)).code == 0
    reader.join(10)
    assert f'"id": {run.pk}' in read[0]
    assert pipe.is_fifo()
