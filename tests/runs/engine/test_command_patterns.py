"""Which pattern finds the tool's commands: the scenario's, else the target's, else the project's."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.models import CommandRecord, Target
from runs.results.comparability import changed_parts
from runs.targets.definitions import read_target
from scenarios.formats.parsed import ScenarioFileError
from tests.builders import make_run, make_suite
from tests.runs.carrying import launch

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER = {"response": "done", "trace": [
    {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "npx ship add"}},
    {"type": "tool_result", "id": "1", "output": "ok"},
]}  # fmt: skip
OWN, TARGETS, PROJECTS = (rf"npx (?P<sub>{word})" for word in ("s", "sh", "ship"))


def found(project: Project, own: str | None, target: str) -> list[str]:
    """Run a scenario and return the subcommands that were found."""
    tool = None if own is None else {"binary": "other", "command_pattern": own}
    version = make_suite(project, ("create",), criteria={"gates": [], "tool": tool})
    definition = {"name": "local", "provider": "mock", "command_pattern": target, **ANSWER}
    Target.objects.create(project=project, name="local", provider="mock", definition=definition)
    run_here.run_here(launch(version))
    return list(CommandRecord.objects.values_list("subcommand", flat=True))


@pytest.mark.parametrize(
    ("own", "target", "expected"),
    [(OWN, TARGETS, ["s"]), ("", TARGETS, ["sh"]), ("", "", ["ship"]), (None, TARGETS, ["sh"])],
)
def test_the_nearest_pattern_finds_commands(project, own, target, expected):
    project.command_pattern = PROJECTS
    project.save()
    assert found(project, own, target) == expected
    fingerprint = Target.objects.get().runs.get().fingerprint
    shared = TARGETS if target else "" if own == OWN else PROJECTS
    assert fingerprint.get("command_pattern", "") == shared


@pytest.mark.parametrize(
    ("own", "before", "after", "changed"),
    [("", "a", "b", ("pattern",)), ("", "a", "a", ()), ("", "", "b", ("pattern",)), ("own", "a", "b", ())],
)
def test_the_pattern_that_applies_counts_for_comparability(project, own, before, after, changed):
    version = make_suite(project, ("create",))
    version.scenario_versions.update(command_pattern=own)
    old, new = (
        make_run(version, fingerprint={"command_pattern": each} if each else {}) for each in (before, after)
    )
    assert changed_parts(old, new).get("create", ()) == changed


def test_a_targets_pattern_must_be_one():
    text = b"name: a\nprovider: mock\ncommand_pattern: '('\n"
    with pytest.raises(ScenarioFileError) as refused:
        read_target(text, "targets.yaml")
    assert refused.value.problems[0].line == 3
    assert "is not a regular expression" in str(refused.value.problems[0])
