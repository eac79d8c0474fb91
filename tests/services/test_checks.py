"""The checks notice what they are for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from packaging.version import Version

from tests.checks import LOCKS, NO_X, NOT_FOR_OTHERS, VENDOR, locks, pinned, vendored, wanted


def test_the_lock_files_are_in_step():
    assert locks() == []


def test_a_lock_is_read_with_extras_and_markers(tmp_path: Path):
    (tmp_path / "x.lock").write_text(
        "psycopg[binary]==3.3.1 \\\n    --hash=sha256:0\nValkey_lite==9.1 ; sys_platform == 'linux' \\\n"
    )
    assert pinned(tmp_path / "x.lock") == {"psycopg": Version("3.3.1"), "valkey-lite": Version("9.1")}


def test_requirements_are_read_without_what_they_include(tmp_path: Path):
    (tmp_path / "x.in").write_text("# why\n-r other.in\ndjango~=5.2  # web\nuv; sys_platform == 'linux'\n")
    assert [each.name for each in wanted(tmp_path / "x.in")] == ["django", "uv"]


def test_every_lock_has_its_sources():
    assert all(sources for sources in LOCKS.values())


@pytest.mark.parametrize(
    "line",
    [b"pip install --index" + b"-url x", b"https://files.python" + b"hosted.org/x"],
    ids=["an index", "a registry"],
)
def test_what_works_on_one_machine_only_is_found(line):
    assert NOT_FOR_OTHERS.search(line)


@pytest.mark.parametrize("line", [b"/home/user", b"pip install uv"])
def test_other_lines_are_left_alone(line):
    assert not NOT_FOR_OTHERS.search(line)


@pytest.mark.parametrize("line", ["a call that is no success", "Texts are no filters.", "It was no run"])
def test_is_no_x_is_found(line):
    assert NO_X.search(line)


@pytest.mark.parametrize("line", ["There is no run.", "it is no longer shown", "there are no trials"])
def test_other_uses_of_no_are_left_alone(line):
    assert not NO_X.search(line)


def test_a_changed_or_unlisted_third_party_script_is_reported(tmp_path: Path) -> None:
    shutil.copytree(VENDOR, tmp_path, dirs_exist_ok=True)
    assert vendored(tmp_path) == []
    (tmp_path / "plotly/plotly-basic.min.js").write_text("changed")
    (tmp_path / "plotly/other.js").touch()
    (tmp_path / "asciinema-player/LICENSE").unlink()
    assert [each.partition(":")[0] for each in vendored(tmp_path)] == [
        "asciinema-player",
        "asciinema-player/LICENSE",
        "plotly/other.js",
        "plotly/plotly-basic.min.js",
    ]
