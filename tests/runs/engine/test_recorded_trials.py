"""What the tool did in a trial is recorded and stored, unless the scenario turns it off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalhub.teams.models import Project
from evaluators.tool_use.recorded_commands import RecordedCall, read_call_record
from evaluators.tool_use.tool import Tool
from runs.engine.tool.tool_recording import recorded_tool, recording_problem, with_record
from runs.models import Trial
from runs.sandbox.recording.record import RecordedTool, ToolRecord
from runs.sandbox.sandbox import Level
from runs.targets.providers.base import Recording
from tests.kept_files import path_of
from tests.runs.carried import one, shell_project
from tests.runs.containments import PATH, containment

TOOL = '#!/bin/sh\n[ "$1" = fail ] && exit 3\nexit 0\n'
MAKE_TOOL = "printf '#!/bin/sh\\n[ \"$1\" = fail ] && exit 3\\nexit 0\\n' > mt; chmod +x mt"
BINARY: dict[str, Any] = {"tool": {"binary": "./mt"}}


@pytest.fixture
def project() -> Project:
    return shell_project()


def record_of(trial: Trial) -> tuple[RecordedCall, ...] | None:
    kept = trial.artifacts.filter(name="tool-calls").first()
    return read_call_record(path_of(kept.sha256).read_bytes()) if kept else None


@pytest.mark.django_db(transaction=True)
def test_a_trial_stores_the_tools_calls_by_the_agent_alone(project: Project) -> None:
    trial = one(
        project,
        setup=[MAKE_TOOL, "./mt setup"],
        prompt="./mt fail | cat; ./mt ok",
        criteria={**BINARY, "gates": [{"type": "command_succeeds", "command": "./mt gate"}]},
        post=[{"command": "./mt post"}],
    )
    calls = record_of(trial)
    assert calls is not None, trial.detail
    assert [(call.argv[-1], call.exit) for call in calls] == [("fail", 3), ("ok", 0)]
    assert trial.detail["notes"] == []


@pytest.mark.django_db(transaction=True)
def test_a_scenario_turns_recording_off(project: Project) -> None:
    trial = one(project, setup=[MAKE_TOOL], prompt="./mt ok", criteria=BINARY, record_tool=False)
    assert record_of(trial) is None
    assert "record_tool: false" in trial.detail["notes"][0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("pattern", "count"),
    [(r"^mt\s+(\w+)", 1), (r"^(mt|other) (\w+)", None), (r"^nowhere-at-all (\w+)", None)],
)
def test_a_pattern_is_recorded_by_its_first_word(project: Project, pattern: str, count: int | None) -> None:
    tool = {"tool": {"command_pattern": pattern}}
    trial = one(project, setup=[MAKE_TOOL], prompt="./mt ok", criteria=tool)
    calls = record_of(trial)
    assert (None if calls is None else len(calls)) == count
    assert any("Set target.binary" in note for note in trial.detail["notes"]) == (count is None)


@pytest.mark.django_db(transaction=True)
def test_secrets_in_arguments_are_masked(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_KEY", 'hunter2"-and-more')
    criteria = {"tool": {"binary": "./mt", "env": {"TOOL_KEY": "${TOOL_KEY}"}}}
    trial = one(project, setup=[MAKE_TOOL], prompt='./mt "$TOOL_KEY"', criteria=criteria)
    calls = record_of(trial)
    assert calls is not None
    assert calls[0].argv[-1] == "[REDACTED]"


@pytest.mark.django_db(transaction=True)
def test_a_scenario_without_a_tool_has_no_record_and_no_note(project: Project) -> None:
    trial = one(project, prompt="true")
    assert record_of(trial) is None
    assert trial.detail["notes"] == []


# fmt: off
NOT_UTF8 = {
    "an argument": ("./mt \"$(printf 'a\\377')\"", r"a\xff"),
    "a file's name": ("cp mt \"$(printf 'x\\377')\"; ./x*; ./mt ok", "ok"),
    **{f"a command line of 6,240 bytes, cut at place {shift} of a character": (f"./mt ok; : {'x' * shift}{'请把第一个任务标记为完成。' * 160}", "ok") for shift in range(3)},
}
# fmt: on


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("prompt", "last"), NOT_UTF8.values(), ids=NOT_UTF8)
def test_bytes_that_are_not_utf8_change_no_outcome(project: Project, prompt: str, last: str) -> None:
    gate = {"gates": [{"type": "command_succeeds", "command": "false"}]}
    trial = one(project, setup=[MAKE_TOOL], prompt=prompt, criteria=BINARY | gate)
    calls = record_of(trial)
    assert (trial.outcome, trial.error) == ("fail", "")
    assert calls is not None and calls[-1].argv[-1] == last


def test_a_line_that_cannot_be_read_is_a_lost_call(tmp_path: Path) -> None:
    record = ToolRecord(RecordedTool("mt"), tmp_path, str(tmp_path), ())
    line = b'{"n": 1, "how": "file", "path": "mt", "argv": ["mt"], "start": 1.0, "parents": []}'
    whole = line.replace(b'"parents"', b'"seconds": 1.0, "parents"')
    record.read(b"\n".join((whole, line, b"[]", whole[:40], whole.replace(b"1.0", b'"x"'), b'{"lost": 2}')))
    recording = with_record(Recording(), record, ())
    assert len(read_call_record(recording.logs["tool-calls"])) == 1
    assert recording.notes == ("6 executions of the tool could not be recorded.",)


BINARIES = {
    "bin/mt": "/workspace/bin/mt",
    "A=1 ./bin/mt": "/workspace/bin/mt",
    "python tool.py": "/workspace/tool.py",
    "python3 -u tool.py serve": "/workspace/tool.py",
    "node ./cli.js serve": "/workspace/cli.js",
    "sh bin/mt": "/workspace/bin/mt",
    "true": "true",
    "not-there-yet": "not-there-yet",
    "python -m pkg.cli": "pkg.cli",
    "npx not-there-yet": "not-there-yet",
    "uv run mt": "mt",
    "true not-there-yet": "true",
}


@pytest.mark.parametrize("binary", BINARIES)
def test_the_program_that_a_binary_names(tmp_path: Path, binary: str) -> None:
    for name in ("bin/mt", "tool.py", "cli.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TOOL)
    found = recorded_tool(Tool(binary=binary), tmp_path, "/workspace", PATH)
    assert found
    assert BINARIES[binary] in (found.name, *found.places)


PATTERNS = {
    r"^true\s+(\w+)": "true",
    r"\btrue (\S+)": "true",
    r"^mt (\w+)": "/workspace/bin/mt",
    r"^\./bin/mt\s+(\w+)": "/workspace/bin/mt",
    r"^missing/mt\s+(\w+)": "",
    r"^nowhere-at-all (\w+)": "",
    r"(\w+) list": "",
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_program_that_a_pattern_begins_with(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mt").write_text(TOOL)
    found = recorded_tool(Tool(command_pattern=pattern), tmp_path, "/workspace", PATH)
    assert (found is not None) == bool(PATTERNS[pattern])
    if found:
        assert PATTERNS[pattern] in (found.name, *found.places)


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK, Level.LIMITS])
def test_recording_works_here(level: Level) -> None:
    assert recording_problem(containment(level)) == ""


def test_nothing_is_recorded_without_a_sandbox() -> None:
    assert recording_problem(containment(Level.OFF)) == "commands run without a sandbox."
