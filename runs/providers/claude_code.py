"""The Claude Code command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import AliasChoices, Field

from runs.containment.path_use import Use
from runs.providers.agent_program import AgentProgram
from runs.providers.agent_session import prompt_of, run_session
from runs.providers.base import Availability, Invocation, Recording
from runs.providers.options import Options, ResolvedTarget

if TYPE_CHECKING:  # runs.containment.sandbox imports this package
    from runs.containment.sandbox import Containment

COMMAND = ("-p", "--output-format", "stream-json", "--verbose")


class ClaudeCodeOptions(Options):
    """How Claude Code is started."""

    path_fields: ClassVar[Mapping[str, Use]] = {"executable": Use.RUN}

    executable: str = Field(
        default="claude", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )
    max_turns: int | None = Field(default=None, gt=0)


class ClaudeCode:
    """Runs each prompt in a session of Claude Code in the trial's workspace."""

    works_in_folder = True

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, ClaudeCodeOptions):
            raise TypeError(f"{target.name} is no claude_code target")
        self._options = target.options
        self._program = AgentProgram("Claude Code", self._options.executable, target, containment)

    def check(self) -> Availability:
        """Return whether Claude Code is installed and may start."""
        return self._program.check()

    def invoke(self, invocation: Invocation) -> Recording:
        """Run a session. Raises `ProviderError` if it can't start or, without a workspace, gives no answer."""
        sandbox = self._program.sandbox(invocation, invocation.workspace)
        prompt = prompt_of(invocation, sandbox)
        return run_session(
            self._program,
            self._arguments(invocation),
            invocation,
            sandbox,
            parser="claude_code",
            cwd=invocation.workspace,
            env=self._options.env,
            log=self._program.log(invocation),
            stdin=prompt,
        )

    def _arguments(self, invocation: Invocation) -> list[str]:
        options = self._options
        model = invocation.model or options.model
        words = [*COMMAND, *(["--model", model] if model else [])]
        words += ["--max-turns", str(options.max_turns)] if options.max_turns else []
        return [*words, *options.args]
