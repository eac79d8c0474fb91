"""`import_scenarios`: the targets file that comes with a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.models import Target
from scenarios.models import Suite
from tests.agentv.eval_folder import cases, put
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

AGENT = {"name": "local", "provider": "cli", "command_template": "sh agent.sh {PROMPT}"}


def folder(tmp_path: Path, agent: dict[str, str]) -> Path:
    targets = json.dumps({"targets": [agent]})
    return put(tmp_path, {"evals/work.eval.yaml": cases("one"), ".agentv/targets.yaml": targets})


def test_its_targets_are_imported_and_listed(tmp_path):
    called = call("import_scenarios", str(folder(tmp_path, AGENT)))
    assert called.code == 0, called.err
    assert "Imported targets: local." in called.out
    target = Target.objects.get()
    assert (target.accepted, target.base_folder) == (True, str(tmp_path / ".agentv"))
    document = call("import_scenarios", str(tmp_path), "--json").document
    assert document["targets"] == [{"name": "local", "provider": "cli", "accepted": True}]
    assert document["target_problems"] == []


def test_on_a_server_who_has_its_shell_is_asked_nothing(tmp_path, settings):
    settings.EMBEDDED = False
    assert call("import_scenarios", str(folder(tmp_path, AGENT))).code == 0
    assert Target.objects.get().accepted


def test_a_broken_targets_file_is_1_and_leaves_the_suite_kept(tmp_path):
    called = call("import_scenarios", str(folder(tmp_path, {**AGENT, "provider": "clli"})))
    assert called.code == 1
    assert "The targets file has errors and was not imported; the suites were stored:" in called.out
    assert ".agentv/targets.yaml:" in called.out
    assert Suite.objects.exists() and not Target.objects.exists()
