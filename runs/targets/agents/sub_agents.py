"""Read the session files of agents and their sub-agents, which their programs write into the trial's scratch folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from evalhub.lib.limits import LARGEST_MESSAGE
from evaluators.transcripts.sessions.sub_agents import MAIN, SUB_AGENT
from evaluators.transcripts.stream import Object, json_or_none, mapping_or_empty, text_or_none
from runs.errors import ProviderError
from runs.sandbox.safe_paths import LeadsOutside, make_folder_beneath, read_beneath
from runs.sandbox.safe_walk import files_beneath
from runs.sandbox.sandbox import Sandbox
from runs.targets.agents.agent_program import AgentProgram
from runs.targets.providers.base import Invocation

MOST_SESSIONS = 50
_BEGINNING = 4_096
"""Bytes of a rollout that say whether it is a sub-agent's."""


def make_home(scratch: Path, name: str) -> Path:
    """Make an agent's folder beside the workspace. Raises `ProviderError` (kind `setup`) if the name is taken."""
    try:
        make_folder_beneath(scratch, name)
    except (OSError, LeadsOutside) as error:
        raise ProviderError(
            f"The agent's folder '{name}' beside the workspace can't be made. "
            "Let the setup commands leave that name free.",
            kind="setup",
        ) from error
    return scratch / name


def codex_sessions(home: Path, *, with_main: bool) -> dict[str, bytes]:
    """Return the rollouts of Codex's sub-agents by artifact, and the agent's own where asked for."""
    sessions: dict[str, bytes] = {}
    number = 0
    for content in _contents(home, "sessions/", ".jsonl"):
        if b'"parent_thread_id"' in content[:_BEGINNING]:
            number += 1
            sessions[f"{SUB_AGENT}{number}"] = content
        elif with_main:
            sessions[MAIN] = content
    return sessions


def read_own_sessions(home: Path, folder: str, suffix: str) -> dict[str, bytes]:
    """Return the session file that an agent wrote for itself, by artifact, and those of its sub-agents beside it."""
    sessions: dict[str, bytes] = {}
    for content in _contents(home, folder, suffix):
        # What the first lines of sub-agents' files have: Gemini CLI's; Qwen Code's and Claude Code's.
        if any(mark in content[:_BEGINNING] for mark in (b'"kind":"subagent"', b'"isSidechain":true')):
            sessions[f"{SUB_AGENT}{len(sessions.keys() - {MAIN}) + 1}"] = content
        else:
            sessions.setdefault(MAIN, content)
    return sessions


def opencode_log(data: Path) -> str:
    """Return the log of opencode's session; empty without one."""
    return b"\n".join(_contents(data, "opencode/log/", ".log")).decode("utf-8", "replace")


def _contents(home: Path, folder: str, suffix: str) -> Iterator[bytes]:
    """Yield the contents of an agent's own files, by name; those that can't be read are left out."""
    try:
        names = sorted(
            name
            for name, _ in files_beneath(home, most=1_000)
            if name.startswith(folder) and name.endswith(suffix)
        )
    except OSError:
        return
    for name in names[:MOST_SESSIONS]:
        try:
            yield read_beneath(home, name, limit=LARGEST_MESSAGE, links=False)
        except OSError:
            continue


def opencode_sessions(
    stream: bytes,
    program: AgentProgram,
    invocation: Invocation,
    sandbox: Sandbox,
    env: dict[str, str],
    *,
    with_main: bool,
) -> dict[str, bytes]:
    """Return the exports of the sessions that opencode's stream names as its sub-agents', by artifact.

    opencode exports them itself, in the agent's sandbox, because its database is as the agent left it.
    The agent's own is among them where asked for.
    """

    def export(id: str) -> bytes:
        try:
            ended = program.run(
                ["export", id],
                replace(invocation, record=None, mcp=None, timeout_seconds=30.0),
                sandbox,
                cwd=invocation.workspace,
                env={**sandbox.own_home(), **env},
            )
        except ProviderError:
            return b""
        start = ended.stdout.find(b"{")
        is_whole = ended.exit_code == 0 and start >= 0 and json_or_none(ended.stdout[start:]) is not None
        return ended.stdout[start:] if is_whole else b""

    parts = [
        mapping_or_empty(mapping_or_empty(json_or_none(line)).get("part"))
        for line in stream.splitlines()
        if b'"task"' in line
    ]
    main_id = text_or_none(mapping_or_empty(json_or_none(stream.partition(b"\n")[0])).get("sessionID"))
    main = export(main_id) if with_main and main_id else b""
    exports = {
        MAIN: main,
        **{
            f"{SUB_AGENT}{number}": export(id)
            for number, id in enumerate(_sub_sessions([*parts, *_parts(main)]), start=1)
        },
    }
    return {name: content for name, content in exports.items() if content}


def _parts(export: bytes) -> Iterator[Object]:
    """Yield the parts of an exported session's messages."""
    messages = mapping_or_empty(json_or_none(export)).get("messages")
    for message in messages if isinstance(messages, list) else ():
        parts = mapping_or_empty(message).get("parts")
        yield from map(mapping_or_empty, parts if isinstance(parts, list) else ())


def _sub_sessions(parts: Iterable[Object]) -> list[str]:
    """Return the ids of the sessions that `task` calls started, in order."""
    ids: dict[str, None] = {}
    for part in parts:
        id = text_or_none(
            mapping_or_empty(mapping_or_empty(part.get("state")).get("metadata")).get("sessionId")
        )
        if part.get("tool") == "task" and id:
            ids[id] = None
    return list(ids)[:MOST_SESSIONS]
