"""The Codex command line (AgentV evaluation, Codex CLI provider)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import AliasChoices, Field

from runs.sandbox.safe_paths import write_next_to_workspace
from runs.sandbox.safe_walk import is_empty
from runs.sandbox.sandbox import Containment
from runs.sandbox.target_roots import Use
from runs.targets.agents.agent_program import AgentFacts, AgentOptions, AgentProgram
from runs.targets.agents.agent_session import prompt_of, run_session
from runs.targets.agents.session_agents import codex_sessions, make_home
from runs.targets.agents.session_end import has_answered
from runs.targets.providers.base import Availability, Invocation, McpEndpoint, Recording
from runs.targets.providers.options import ResolvedTarget

COMMAND = (
    "--ask-for-approval",
    "never",
    "exec",
    "--json",
    "--color",
    "never",
    "--skip-git-repo-check",
)
FACTS = AgentFacts("@openai/codex", oldest=(0, 44), newest_major=0, variable="OPENAI_API_KEY")
KEY = "CODEX_API_KEY"
OWN_SANDBOX = ("--sandbox", "-s", "--full-auto", "--dangerously-bypass-approvals-and-sandbox", "--yolo")
PROMPT = "prompt.md"
HOME = "codex-home"
"""Codex's folder for sessions and settings, beside the workspace: it outlives the sandbox."""


class CodexOptions(AgentOptions):
    """How Codex is started."""

    executable: str = Field(
        default="codex", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )
    path_fields: ClassVar[Mapping[str, Use]] = {
        "executable": Use.RUN,
        "cwd": Use.WORK,
        "log_dir": Use.WRITE,
    }
    starts_in_workspace: ClassVar[frozenset[str]] = frozenset(("cwd",))
    cwd: str | None = None
    log_dir: str | None = Field(default=None, validation_alias=AliasChoices("log_dir", "log_directory"))
    log_format: Literal["summary", "json"] | None = Field(
        default=None, validation_alias=AliasChoices("log_format", "log_output_format")
    )


class Codex:
    """Runs each prompt in a session of Codex on standard input."""

    works_in_folder = True

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, CodexOptions):
            raise TypeError(f"{target.name} isn't a codex target")
        self._target = target
        self._options = target.options
        self._containment = containment
        self._program = AgentProgram("Codex", self._options.executable, target, containment, FACTS)

    def check(self) -> Availability:
        """Return whether Codex is installed and may start."""
        return self._program.check()

    def invoke(self, invocation: Invocation) -> Recording:
        """Run a session. Raises `ProviderError` if it can't start or, without a workspace, gives no answer."""
        options = self._options
        cwd = self._containment.working_folder(
            options.cwd, invocation.workspace, base=self._target.base_folder
        )
        sandbox = self._program.sandbox(invocation, cwd)
        prompt = prompt_of(invocation, sandbox)
        # Write the prompt down in the workspace only where nobody looks into that and nothing else is
        # there.
        bare = not invocation.in_workspace and is_empty(invocation.workspace)
        folder = invocation.workspace if bare else invocation.scratch
        write_next_to_workspace(folder, PROMPT, prompt.encode("utf-8", "replace"), "The prompt")
        home = make_home(invocation.scratch, HOME)
        return run_session(
            self._program,
            self._arguments(invocation),
            invocation,
            sandbox,
            parser="codex",
            cwd=cwd,
            env={
                "CODEX_HOME": sandbox.inside(home),
                **({KEY: options.api_key} if options.api_key else {}),
                **options.env,
            },
            log=self._program.log(invocation, options.log_dir, options.log_format),
            stdin=prompt,
            # A failed turn has no tokens in the stream.
            sessions=lambda recording: codex_sessions(
                home, with_main=recording.was_cut or not has_answered(recording)
            ),
        )

    def _arguments(self, invocation: Invocation) -> list[str]:
        model = invocation.model or self._options.model
        words = [*COMMAND, *self._own_settings(), *(_server(invocation.mcp) if invocation.mcp else ())]
        return [*words, *(["--model", model] if model else []), *self._options.args, "-"]

    def _own_settings(self) -> list[str]:
        """Return the switches that evalhub's sandbox makes unnecessary, and the model service."""
        options = self._options
        words = [] if options.sets(OWN_SANDBOX) else ["--sandbox", "danger-full-access"]
        if not options.cwd:
            # Instructions come from the workspace alone, not from folders around it.
            words += ["-c", "project_root_markers=[]"]
        if options.base_url:
            # TOML's basic strings are JSON's.
            key = f", env_key={json.dumps(KEY)}" if options.api_key else ""
            service = f'name="evalhub", base_url={json.dumps(options.base_url)}, wire_api="responses"{key}'
            words += ["-c", 'model_provider="evalhub"', "-c", f"model_providers.evalhub={{{service}}}"]
        return words


def _server(mcp: McpEndpoint) -> tuple[str, ...]:
    """Return the switches for an MCP server; TOML's basic strings and lists of them are JSON's."""
    command, *args = mcp.command or ("",)
    how = (
        f"command={json.dumps(command)}, args={json.dumps(args)}" if command else f"url={json.dumps(mcp.url)}"
    )
    return ("-c", f"mcp_servers.{mcp.name}={{{how}}}")
