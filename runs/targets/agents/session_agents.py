"""Run Gemini CLI, Qwen Code and Copilot CLI, and read the session files that agents write during a trial."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import AliasChoices, Field

from evalhub.lib.limits import LARGEST_MESSAGE
from evaluators.model import Json
from evaluators.transcripts.repeated_requests import find_repeated_request
from evaluators.transcripts.sessions.sub_agents import MAIN, SUB_AGENT
from evaluators.transcripts.stream import Object, json_or_none, mapping_or_empty, text_or_none
from runs.errors import ProviderError
from runs.sandbox.safe_paths import LeadsOutside, make_folder_beneath, read_beneath, write_next_to_workspace
from runs.sandbox.safe_walk import files_beneath
from runs.sandbox.sandbox import Containment, Sandbox
from runs.targets.agents.agent_program import AgentFacts, AgentOptions, AgentProgram
from runs.targets.agents.agent_session import prompt_of, run_session
from runs.targets.providers.base import Availability, Invocation, McpEndpoint, Recording
from runs.targets.providers.options import ResolvedTarget

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


HOME = "agent-home"
"""The agent's home, beside the workspace: its session file outlives the sandbox."""
MCP_URL = "EVALHUB_MCP_URL"
"""The variable with the address of the MCP server under test, because its port is known only when the agent runs."""
NO_KEY = "none"
"""The key for an address that needs none, because the programs ask for one."""


class GeminiCliOptions(AgentOptions):
    """How Gemini CLI is started."""

    executable: str = Field(
        default="gemini", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )


class QwenCodeOptions(AgentOptions):
    """How Qwen Code is started."""

    executable: str = Field(
        default="qwen", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )


class CopilotCliOptions(AgentOptions):
    """How Copilot CLI is started."""

    executable: str = Field(
        default="copilot", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )


class SessionAgent(ABC):
    """Runs each prompt in a session of an agent in the trial's workspace; each kind says what differs."""

    works_in_folder = True
    kind: ClassVar[str]
    title: ClassVar[str]
    facts: ClassVar[AgentFacts]
    sessions: ClassVar[tuple[str, str]]
    """The folder of session files in the home, and how their names end."""
    settings_file: ClassVar[str] = ""

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, AgentOptions) or target.kind != self.kind:
            raise TypeError(f"{target.name} isn't a {self.kind} target")
        self._options = target.options
        self._program = AgentProgram(
            self.title, str(getattr(target.options, "executable", "")), target, containment, self.facts
        )

    def check(self) -> Availability:
        """Return whether the program is installed and may start."""
        return self._program.check()

    def invoke(self, invocation: Invocation) -> Recording:
        """Run a session. Raises `ProviderError` if it can't start or, without a workspace, gives no answer."""
        sandbox = self._program.sandbox(invocation, invocation.workspace)
        prompt = prompt_of(invocation, sandbox)
        home = make_home(invocation.scratch, HOME)
        if self.settings_file:
            make_home(home, self.settings_file.partition("/")[0])
            content = json.dumps({**self.settings(), **_servers(invocation.mcp)}).encode()
            write_next_to_workspace(home, self.settings_file, content, "The agent's settings")
        model = invocation.model or self._options.model or ""
        return run_session(
            self._program,
            # As one word, so that no prompt is taken for an option.
            [
                *self.arguments(model),
                *self.mcp_arguments(invocation.mcp),
                *self._options.args,
                f"--prompt={prompt}",
            ],
            invocation,
            sandbox,
            parser=self.kind,
            cwd=invocation.workspace,
            env={
                "HOME": sandbox.inside(home),
                **self.env(model),
                **({MCP_URL: invocation.mcp.url} if invocation.mcp and invocation.mcp.url else {}),
                **self._options.env,
            },
            log=self._program.log(invocation),
            sessions=lambda recording: read_own_sessions(home, *self.sessions),
            repeating=lambda recording: find_repeated_request(recording.parser, recording.logs),
        )

    def settings(self) -> dict[str, Json]:
        """Return the content of the settings file."""
        return {}

    def mcp_arguments(self, mcp: McpEndpoint | None) -> list[str]:
        """Return the arguments for an MCP server, of an agent without a settings file."""
        return []

    @abstractmethod
    def arguments(self, model: str) -> list[str]:
        """Return the arguments beside the target's own and the prompt."""

    @abstractmethod
    def env(self, model: str) -> Mapping[str, str]:
        """Return the variables beside the target's own."""


class GeminiCli(SessionAgent):
    """Gemini CLI, with every call approved, because evalhub contains it."""

    kind, title = "gemini_cli", "Gemini CLI"
    facts = AgentFacts("@google/gemini-cli", oldest=(0, 61), newest_major=0, variable="GEMINI_API_KEY")
    sessions = (".gemini/tmp/", ".jsonl")
    settings_file = ".gemini/settings.json"

    def settings(self) -> dict[str, Json]:
        """Return settings for a session that nobody attends; instructions above the workspace are left out."""
        has_key = bool(
            self._options.api_key or self._options.base_url or "GEMINI_API_KEY" in self._options.env
        )
        auth: dict[str, Json] = {"security": {"auth": {"selectedType": "gemini-api-key"}}} if has_key else {}
        quiet: dict[str, Json] = {"usageStatisticsEnabled": False}
        return {
            **auth,
            "privacy": quiet,
            "general": {"enableAutoUpdate": False},
            "context": {"memoryBoundaryMarkers": []},
        }

    def arguments(self, model: str) -> list[str]:
        """Return the arguments of a session whose stream is read."""
        named = ["--model", model] if model else []
        approval = ("--approval-mode", "--yolo", "-y")
        approved = [] if self._options.sets(approval) else ["--approval-mode", "yolo"]
        return ["--output-format", "stream-json", *approved, *named]

    def env(self, model: str) -> Mapping[str, str]:
        """Return the key and the address; Gemini CLI adds the protocol's version to the address itself."""
        env = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        if self._options.base_url:
            env["GOOGLE_GEMINI_BASE_URL"] = _without_version(self._options.base_url)
            env["GEMINI_API_KEY"] = NO_KEY
        return env | ({"GEMINI_API_KEY": self._options.api_key} if self._options.api_key else {})


class QwenCode(SessionAgent):
    """Qwen Code, which asks a service in OpenAI's protocol."""

    kind, title = "qwen_code", "Qwen Code"
    facts = AgentFacts("@qwen-code/qwen-code", oldest=(0, 15), newest_major=0, variable="OPENAI_API_KEY")
    sessions = (".qwen/projects/", ".jsonl")
    settings_file = ".qwen/settings.json"

    def settings(self) -> dict[str, Json]:
        """Return settings for a session that nobody attends."""
        return {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}

    def arguments(self, model: str) -> list[str]:
        """Return the arguments of a session whose stream is read."""
        named = ["--model", model] if model else []
        approval = ("--approval-mode", "--yolo", "-y")
        approved = [] if self._options.sets(approval) else ["--yolo"]
        auth = [] if self._options.sets(("--auth-type",)) else ["--auth-type", "openai"]
        return ["--output-format", "stream-json", *approved, *auth, *named]

    def env(self, model: str) -> Mapping[str, str]:
        """Return the key and the address."""
        env = (
            {"OPENAI_BASE_URL": self._options.base_url, "OPENAI_API_KEY": NO_KEY}
            if self._options.base_url
            else {}
        )
        return env | ({"OPENAI_API_KEY": self._options.api_key} if self._options.api_key else {})


class CopilotCli(SessionAgent):
    """Copilot CLI, with GitHub's models or those of another address in OpenAI's protocol."""

    kind, title = "copilot_cli", "Copilot CLI"
    facts = AgentFacts("@github/copilot", oldest=(1, 0), newest_major=1, variable="COPILOT_GITHUB_TOKEN")
    sessions = (".copilot/session-state/", "/events.jsonl")

    def arguments(self, model: str) -> list[str]:
        """Return the arguments of a session whose stream is read."""
        named = ["--model", model] if model and not self._options.base_url else []
        return ["--output-format", "json", "--allow-all-tools", *named]

    def mcp_arguments(self, mcp: McpEndpoint | None) -> list[str]:
        """Return the server under test as configuration, whose address is replaced when the agent starts."""
        if mcp is None:
            return []
        how = {"type": "http", "url": mcp.url} if mcp.url else {"type": "local", **_command(mcp)}
        config = {"mcpServers": {mcp.name: {**how, "tools": ["*"]}}}
        return ["--additional-mcp-config", json.dumps(config)]

    def env(self, model: str) -> Mapping[str, str]:
        """Return the token of GitHub, or the key, address and model of another service."""
        options, env = self._options, {"COPILOT_AUTO_UPDATE": "false"}
        if not options.base_url:
            return env | ({"COPILOT_GITHUB_TOKEN": options.api_key} if options.api_key else {})
        env["COPILOT_PROVIDER_BASE_URL"] = options.base_url
        env["COPILOT_PROVIDER_API_KEY"] = options.api_key or NO_KEY
        return env | {"COPILOT_OFFLINE": "true"} | ({"COPILOT_MODEL": model} if model else {})


def _servers(mcp: McpEndpoint | None) -> dict[str, Json]:
    """Return the part of Gemini CLI's and Qwen Code's settings with the MCP server under test, whose calls need no consent."""
    if mcp is None:
        return {}
    how: dict[str, Json] = {"httpUrl": f"${MCP_URL}"} if mcp.url else _command(mcp)
    return {"mcpServers": {mcp.name: {**how, "trust": True}}}


def _command(mcp: McpEndpoint) -> dict[str, Json]:
    command, *args = mcp.command
    return {"command": command, "args": args}


def _without_version(address: str) -> str:
    address = address.rstrip("/")
    for version in ("/v1beta", "/v1"):
        address = address.removesuffix(version)
    return address
