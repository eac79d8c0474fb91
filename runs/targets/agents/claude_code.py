"""The Claude Code command line."""

from __future__ import annotations

import json
from typing import ClassVar

from pydantic import AliasChoices, Field

from evaluators.transcripts.claude_code import NEWEST_MAJOR
from runs.sandbox.sandbox import Containment, Sandbox
from runs.targets.agents.agent_program import AgentFacts, AgentOptions, AgentProgram
from runs.targets.agents.agent_session import prompt_of, run_session
from runs.targets.agents.session_agents import make_home, read_own_sessions
from runs.targets.agents.session_end import has_closed
from runs.targets.providers.base import Availability, Invocation, Recording
from runs.targets.providers.options import ResolvedTarget

COMMAND = ("-p", "--output-format", "stream-json", "--verbose")
FACTS = AgentFacts(
    "@anthropic-ai/claude-code", oldest=(1, 0), newest_major=NEWEST_MAJOR, variable="ANTHROPIC_API_KEY"
)
HOME = "agent-home"
"""The agent's home, beside the workspace: its session file outlives the sandbox."""
SESSIONS = (".claude/projects/", ".jsonl")
OWN_PERMISSIONS = (
    "--permission-mode",
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
    "--permission-prompt-tool",
)
INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".claude/CLAUDE.md", ".claude/rules/**")
ENVIRONMENT = {
    # Root may skip permissions only in a sandbox, which evalhub provides.
    "IS_SANDBOX": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


class ClaudeCodeOptions(AgentOptions):
    """How Claude Code is started."""

    executable: str = Field(
        default="claude", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )
    max_turns: int | None = Field(default=None, gt=0)
    limits_turns: ClassVar[bool] = True


class ClaudeCode:
    """Runs each prompt in a session of Claude Code in the trial's workspace."""

    works_in_folder = True

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, ClaudeCodeOptions):
            raise TypeError(f"{target.name} isn't a claude_code target")
        self._options = target.options
        self._program = AgentProgram("Claude Code", self._options.executable, target, containment, FACTS)

    def check(self) -> Availability:
        """Return whether Claude Code is installed and may start."""
        return self._program.check()

    def invoke(self, invocation: Invocation) -> Recording:
        """Run a session. Raises `ProviderError` if it can't start or, without a workspace, gives no answer."""
        sandbox = self._program.sandbox(invocation, invocation.workspace)
        prompt = prompt_of(invocation, sandbox)
        home = make_home(invocation.scratch, HOME)
        return run_session(
            self._program,
            [*self._arguments(invocation), *_only_the_workspace(invocation, sandbox)],
            invocation,
            sandbox,
            parser="claude_code",
            cwd=invocation.workspace,
            env={"HOME": sandbox.inside(home), **self._env()},
            log=self._program.log(invocation),
            stdin=prompt,
            sessions=lambda recording: {} if has_closed(recording) else read_own_sessions(home, *SESSIONS),
        )

    def _arguments(self, invocation: Invocation) -> list[str]:
        options = self._options
        model = invocation.model or options.model
        words = [*COMMAND, *(["--model", model] if model else [])]
        if invocation.mcp:
            words += ["--mcp-config", json.dumps(invocation.mcp.config), "--strict-mcp-config"]
        turns = invocation.spec.limits.max_turns or options.max_turns
        words += ["--max-turns", str(turns)] if turns else []
        words += [] if options.sets(OWN_PERMISSIONS) else ["--permission-mode", "bypassPermissions"]
        return [*words, *options.args]

    def _env(self) -> dict[str, str]:
        options, env = self._options, dict(ENVIRONMENT)
        if options.base_url:
            # Claude Code adds /v1 itself, and asks for a key even where none is needed.
            env["ANTHROPIC_BASE_URL"] = options.base_url.rstrip("/").removesuffix("/v1")
            env["ANTHROPIC_API_KEY"] = "none"
        if options.api_key:
            env["ANTHROPIC_API_KEY"] = options.api_key
        return {**env, **options.env}


def _only_the_workspace(invocation: Invocation, sandbox: Sandbox) -> list[str]:
    """Return arguments that keep instructions of the folders above the workspace out, where they can be seen."""
    if sandbox.inside(invocation.workspace) != str(invocation.workspace):
        return []
    above = [str(folder).rstrip("/") for folder in invocation.workspace.parents]
    excluded = [f"{folder}/{name}" for folder in above for name in INSTRUCTIONS]
    return ["--settings", json.dumps({"claudeMdExcludes": excluded})]
