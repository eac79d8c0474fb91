"""What grows must say why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.sizes import find_base, find_growth, measure, name_room


def test_docstrings_comments_and_layout_do_not_count() -> None:
    bare = "def double(number):\n    return 2 * number\n"
    told = '"""A module."""\n\n\ndef double(number):\n    """Return twice the number."""\n\n    return 2 * number  # twice\n'
    assert measure("runs/double.py", told) == measure("runs/double.py", bare) == 10
    assert measure("tests/test_double.py", bare) == 2


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("runs/engine/trials/work.py", "runs/engine"),
        ("runs/apps.py", "runs"),
        ("runs/migrations/0002_rounds.py", ""),
        ("templates/runs/run.html", "templates/runs"),
        ("static/js/page.js", "static/js"),
        ("static/vendor/plotly/plotly.js", ""),
        ("tests/runs/engine/test_lanes.py", "tests/runs"),
        ("docs/README.md", ""),
    ],
)
def test_each_file_has_a_room(path: str, room: str) -> None:
    assert name_room(path) == room


def test_a_room_grows_only_with_a_reason(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        author = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    def write(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    git("init", "-b", "main")
    write("tests/size.toml", "")
    write("runs/engine/a.py", "x = 1\ny = 2\n")
    git("add", ".")
    git("commit", "-m", "Begin")
    git("switch", "-c", "branch")
    write("runs/engine/a.py", "x = 1\n")
    write("runs/engine/b.py", "y = 2\n")
    assert find_growth("HEAD", tmp_path) == []
    write("runs/engine/c.py", "z = 3\n")
    git("add", ".")
    git("commit", "-m", "Grow")
    said = "runs/engine grew by 3 to 9. Remove as much, or raise its line in tests/size.toml with a reason."
    assert find_growth(find_base(tmp_path), tmp_path) == [said]
    write("tests/size.toml", '"runs/engine" = {size = 9, reason = ""}\n')
    assert find_growth(find_base(tmp_path), tmp_path) == [said]
    write("tests/size.toml", '"runs/engine" = {size = 9, reason = "It has z."}\n')
    assert find_growth(find_base(tmp_path), tmp_path) == []
