"""A field that a target ignores is said wherever a targets file goes in, and on the target's runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.models import Run
from tests.commands.calling import call

SUITE = "name: a\ntarget: {binary: t}\ntask: x\ngates: [{type: command_succeeds, command: 'true'}]\n"
TARGETS = "targets:\n  - name: quiet\n    provider: mock\n    colour: red\n"
SAID = "targets.yaml:4: targets[0].colour: A mock target has no field 'colour'. Remove it. [targets/unknown-field]"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(SUITE)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return tmp_path


def test_a_check_says_it(folder):
    checked = call("check_scenarios", str(folder))
    assert (checked.code, checked.out) == (0, f"{SAID}\n0 problems, 1 hint.\n")
    assert call("check_scenarios", str(folder), "--strict").code == 1


def test_a_check_reports_errors_of_the_targets_file(folder):
    (folder / "targets.yaml").write_text(TARGETS.replace("mock", "cli"))
    checked = call("check_scenarios", str(folder))
    assert checked.code == 2
    assert "A cli target has no field 'colour'." in checked.out
    assert "A cli target needs the field 'command_template'." in checked.out


def test_an_import_says_it(folder):
    imported = call("import_scenarios", str(folder))
    assert (imported.code, SAID in imported.out) == (0, True)
    (hint,) = call("import_scenarios", str(folder), "--json").document["target_hints"]
    assert (hint["line"], hint["id"]) == (4, "targets/unknown-field")


@pytest.mark.parametrize("bundled", [True, False])
def test_a_run_says_it(folder, bundled):
    given = ["--targets", str(folder / "targets.yaml")]
    path = folder if bundled else folder / "a.yaml"
    done = call("run_scenarios", str(path), *([] if bundled else given), "--target", "quiet", "--now")
    sentence = "quiet: A mock target has no field 'colour'. It is ignored. Remove it."
    assert sentence in done.out
    assert Run.objects.get().warnings == [sentence]
