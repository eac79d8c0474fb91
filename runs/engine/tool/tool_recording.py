"""Decide whether a trial's tool is recorded, and prepare its record."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path
from shlex import split

from evalhub.lib.numbers import format_count
from evaluators.patterns import leading_word
from evaluators.redaction import mask_values_in_bytes
from evaluators.tool_use.launchers import (
    INTERPRETERS,
    LAUNCHERS,
    SCRIPT_SUFFIX,
    SHELLS,
    SUBCOMMANDS,
    interpreter_name,
    program_name,
)
from evaluators.tool_use.recorded_commands import (
    MOST_RECORDED_CALLS,
    RecordedCall,
    count_lost_calls,
    lost_calls_line,
    read_call_record,
)
from evaluators.tool_use.tool import Tool
from runs.engine.context import RunContext
from runs.engine.task import Task
from runs.engine.workspace.workspace import LocalWorkspace, TrialFolder
from runs.errors import ProviderError
from runs.results.counting import NOT_RECORDED
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.recording.record import RecordedTool, ToolRecord, list_program_places
from runs.sandbox.safe_paths import exists_beneath
from runs.sandbox.safe_walk import temporary_folders
from runs.sandbox.sandbox import HOME, Containment, Level
from runs.sandbox.worker_settings import containment
from runs.targets.providers.base import Recording

RECORD = "tool-calls"
"""The artifact with the recorded executions, a JSON object a line."""
RECORDED_KINDS = frozenset(
    ("cli", "codex", "claude_code", "opencode", "gemini_cli", "qwen_code", "copilot_cli")
)
"""Kinds of targets whose agent runs as a process here."""
_AGAIN_SECONDS = 60.0
_tried: dict[Containment, tuple[str, float]] = {}
"""The last trial of each containment: the problem, and when it was tried."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_LITERAL_PATH = re.compile(
    r"(?:\^|\\b|\(\?:|\()*(?P<path>(?:\w|\\?[.-])*\\?/(?:\w|\\?[./-])+)(?=\)?(?: |\\s|\\b|\[ |\Z))"
)
"""The path that a pattern begins with."""


def record_for(
    task: Task, folder: TrialFolder, workspace: LocalWorkspace, env: Mapping[str, str]
) -> tuple[ToolRecord | None, str]:
    """Return the record of a trial's tool, or a sentence on why it is not recorded; neither if there is nothing to record.

    `env` are the agent's variables.
    """
    tool = task.spec.criteria.tool
    if tool is None or tool.mcp or not (tool.binary or tool.command_pattern):
        return None, ""
    if task.context.target.kind not in RECORDED_KINDS:
        return None, ""
    if not task.spec.record_tool:
        return None, f"{NOT_RECORDED}the scenario says record_tool: false."
    if problem := recording_problem(workspace.containment):
        return None, f"{NOT_RECORDED}{problem}"
    inside = workspace.inside(folder.workspace)
    path = env.get("PATH", workspace.containment.path)
    recorded = recorded_tool(tool, folder.workspace, inside, path)
    if recorded is None:
        return None, f"{NOT_RECORDED}its pattern names no program. Set target.binary."
    writable = (inside, workspace.inside(folder.scratch), "/tmp", HOME)  # noqa: S108  # the sandbox's own
    return ToolRecord(recorded, folder.workspace, inside, writable), ""


def not_recorded(context: RunContext) -> list[str]:
    """Return why the tool of a run is not recorded on this machine, as a warning; none if it is or there is none."""
    is_recordable = any((tool.binary or tool.command_pattern) and not tool.mcp for tool, _ in context.tools)
    if not is_recordable or context.target.kind not in RECORDED_KINDS:
        return []
    problem = recording_problem(containment().for_target(context.target.options))
    return (
        [f"The tool is not recorded: {problem} Its commands come from the agent's own events."]
        if problem
        else []
    )


def recorded_tool(tool: Tool, workspace: Path, inside: str, path: str) -> RecordedTool | None:
    """Return which program to record: the tool's binary, else the program that its pattern begins with.

    None if the pattern begins with no program on PATH or in the workspace. `inside` is the workspace's path in the
    sandbox, `path` its PATH.
    """
    program = (
        _program_of_binary(tool.binary, workspace, path)
        if tool.binary.strip()
        else _program_of_pattern(tool.command_pattern, workspace, path)
    )
    if not program:
        return None
    name = program_name(program)
    places = list_program_places(program, inside, path)
    if "/" not in program:
        places = (*places, *(f"{inside}/{each}" for each in _in_workspace(workspace, program)))
    is_script = SCRIPT_SUFFIX.search(name) is not None
    return RecordedTool(name, places, by_name="/" not in program and not is_script)


def _program_of_binary(binary: str, workspace: Path, path: str) -> str:
    """Return the program of a command such as `python tool.py serve`: the last word that is a file or on PATH.

    Interpreters and launchers are left out. If nothing exists yet, it is the word behind these, else the first.
    """
    words = _words(binary)
    if len(words) == 1:
        return words[0]
    if "-m" in words[:-1] and interpreter_name(program_name(words[0])) in INTERPRETERS:
        return words[words.index("-m") + 1]
    plain = [word for word in words if not word.startswith("-")]
    candidates = [word for word in plain if not _runs_another(word)] or plain
    existing = [word for word in candidates if _exists(word, workspace, path)]
    return (existing or candidates)[-1] if existing or _runs_another(words[0]) else candidates[0]


def _program_of_pattern(pattern: str, workspace: Path, path: str) -> str:
    """Return the program that a pattern begins with, if it is on PATH or in the workspace; else an empty text."""
    literal = _LITERAL_PATH.match(pattern)
    if literal and "|" not in pattern:
        program = literal["path"].replace("\\", "")
        return program if _exists(program, workspace, path) else ""
    word = leading_word(pattern)
    executable = word and (shutil.which(word, path=path) or _in_workspace(workspace, word))
    return word if executable else ""


def _runs_another(word: str) -> bool:
    name = program_name(word)
    return (
        interpreter_name(name) in INTERPRETERS or name in LAUNCHERS or name in SUBCOMMANDS or name in SHELLS
    )


def _exists(word: str, workspace: Path, path: str) -> bool:
    """Return whether a word names a file of the workspace or a program."""
    return _lies_in(workspace, word) or ("/" not in word and shutil.which(word, path=path) is not None)


def _lies_in(workspace: Path, path: str) -> bool:
    try:
        return exists_beneath(workspace, path)
    except OSError:  # absolute, or by a link that leads out
        return False


def _words(binary: str) -> list[str]:
    """Return the words of a command, without the variables before it."""
    try:
        words = split(binary)
    except ValueError:
        words = binary.split()
    return list(dropwhile(_ASSIGNMENT.match, words)) or [binary]


def _in_workspace(workspace: Path, program: str) -> list[str]:
    """Return the usual places of a program in a workspace where it exists, relative to it."""
    folders = ("", "bin/", "node_modules/.bin/", ".venv/bin/")
    return [f"{folder}{program}" for folder in folders if _lies_in(workspace, f"{folder}{program}")]


def with_record(recording: Recording, record: ToolRecord, secrets: tuple[str, ...]) -> Recording:
    """Return the recording of an agent with the executions of its tool, without secret values."""
    if record.content is None:
        return recording
    content = mask_values_in_bytes(record.content, secrets)
    lines = min(content.count(b"\n"), MOST_RECORDED_CALLS)
    lost = record.lost + lines - len(read_call_record(content))
    sentence = f"{format_count(lost, 'execution')} of the tool could not be recorded."
    notes = (*recording.notes, sentence) if lost else recording.notes
    content += lost_calls_line(lost) if lost else b""
    return replace(recording, logs={**recording.logs, RECORD: content}, notes=notes)


def recorded_calls(recording: Recording) -> tuple[tuple[RecordedCall, ...] | None, int]:
    """Return the executions of the tool, None if it was not recorded, and how many were lost."""
    content = recording.logs.get(RECORD)
    return (None, 0) if content is None else (read_call_record(content), count_lost_calls(content))


def recording_problem(containment: Containment) -> str:
    """Return why a tool can't be recorded here, in a sentence; empty if it can.

    Tried once per process; a failure, which may pass, again after a minute.
    """
    if containment.level is Level.OFF:
        return "commands run without a sandbox."
    problem, tried = _tried.get(containment, ("", float("-inf")))
    if (not problem and tried > 0) or time.monotonic() - tried < _AGAIN_SECONDS:
        return problem
    problem = _try_recording(containment)
    _tried[containment] = (problem, time.monotonic())
    return problem


def _try_recording(containment: Containment) -> str:
    with temporary_folders("evalhub-recording-") as (workspace, scratch):
        sandbox = containment.around(workspace, scratch, profile=AGENT)
        record = ToolRecord(RecordedTool("true", by_name=True), workspace, sandbox.inside(workspace), ())
        try:
            result = run_process(
                "true; env true",
                cwd=workspace,
                env=sandbox.own_home(),
                timeout_seconds=10.0,
                limits=sandbox.limits,
                sandbox=sandbox,
                record=record,
            )
        except (ProviderError, OSError) as error:
            return f"this machine can't: {error}"
    if result.exit_code != 0 or not record.content:
        said = result.stderr.decode("utf-8", "replace").strip() or "seccomp or ptrace is not allowed"
        return f"this machine can't: {said}. It needs Linux 5.6, seccomp notifications and ptrace."
    return ""
