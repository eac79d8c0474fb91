"""Every preset of a launch says what it said; `python -m tests.presets` writes the pinned files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.sandbox.sandbox import Level
from tests.presets.pinned_files import FOLDER, check
from tests.presets.presets import PRESETS
from tests.runs.containments import machine_of
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

ORDINARY = ("plain-run", "guidance-ab", "retest", "undecided")


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in ORDINARY else pytest.mark.slow) for each in PRESETS]
)
def test_a_preset_says_what_it_said(name: str, tmp_path: Path) -> None:
    # Without it no command is recorded.
    machine_of(Level.BWRAP)
    check(name, PRESETS[name](tmp_path))


def test_each_pinned_file_has_a_test() -> None:
    assert {each.stem for each in FOLDER.iterdir()} == {*PRESETS, "example-hashes"}
