"""The Codex command line (AgentV evaluation, Codex CLI provider)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import AliasChoices, Field

from evaluators.transcripts import codex as reader
from evaluators.transcripts.reading import UnreadableTranscript
from runs.providers.agent_program import AgentProgram
from runs.providers.base import Availability, Invocation, Recording
from runs.providers.options import Options, ResolvedTarget
from runs.providers.preread import preread_prompt
from runs.providers.process import ProcessResult

if TYPE_CHECKING:  # runs.sandbox imports this package
    from runs.sandbox import Containment, Sandbox

COMMAND = (
    "--ask-for-approval",
    "never",
    "exec",
    "--json",
    "--color",
    "never",
    "--skip-git-repo-check",
)
PROMPT = "prompt.md"


class CodexOptions(Options):
    """How Codex is started."""

    executable: str = Field(
        default="codex", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )
    cwd: str | None = None
    log_dir: str | None = Field(default=None, validation_alias=AliasChoices("log_dir", "log_directory"))
    log_format: Literal["summary", "json"] | None = Field(
        default=None, validation_alias=AliasChoices("log_format", "log_output_format")
    )


class Codex:
    """Gives each prompt to a session of Codex on standard input."""

    works_in_folder = True

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, CodexOptions):
            raise TypeError(f"{target.name} is no codex target")
        self._options = target.options
        self._program = AgentProgram("Codex", self._options.executable, target, containment)

    def check(self) -> Availability:
        """Whether Codex is there and may be started."""
        return self._program.check()

    def invoke(self, invocation: Invocation) -> Recording:
        """Run a session. Raises `ProviderError` where it cannot start or, without a workspace, did not answer."""
        options = self._options
        cwd = Path(options.cwd) if options.cwd else invocation.workspace
        sandbox = self._program.sandbox(invocation, cwd)
        prompt = self._prompt(invocation, sandbox)
        (_prompt_folder(invocation) / PROMPT).write_text(prompt, encoding="utf-8")
        log = self._program.log(invocation, options.log_dir, options.log_format)
        result = self._program.run(
            self._arguments(invocation),
            invocation,
            sandbox,
            cwd=cwd,
            env=options.env,
            stdin=prompt.encode("utf-8", "replace"),
            log=log,
        )
        self._program.refuse_failure(result, invocation, log.path)
        self._refuse_silence(result, invocation, log.path)
        return Recording(
            raw=result.stdout,
            parser="codex",
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            cancelled=result.cancelled,
            seconds=result.seconds,
            truncated=result.truncated,
            stderr=result.stderr.decode("utf-8", "replace"),
            logs={"codex": log.path},
            notes=(result.error,) if result.error else (),
        )

    def _arguments(self, invocation: Invocation) -> list[str]:
        model = invocation.model or self._options.model
        return [*COMMAND, *(["--model", model] if model else []), *self._options.args, "-"]

    def _prompt(self, invocation: Invocation, sandbox: Sandbox) -> str:
        return preread_prompt(
            invocation.prompt,
            guidelines=[sandbox.inside(path) for path in invocation.guideline_files],
            files=[sandbox.inside(path) for path in invocation.files],
        )

    def _refuse_silence(self, result: ProcessResult, invocation: Invocation, log: Path) -> None:
        """Raise `ProviderError` where an answer is all that is wanted and there is none."""
        if invocation.in_workspace or result.cancelled:
            return
        try:
            answer = reader.parse(result.stdout).answer
        except UnreadableTranscript as error:
            raise self._program.failed(f"gave no stream that can be read ({error})", result, log) from error
        if not answer:
            raise self._program.failed("ended without a message of the assistant", result, log)


def _prompt_folder(invocation: Invocation) -> Path:
    """The prompt lies in the workspace only where nobody looks into that and nothing else is there."""
    bare = not invocation.in_workspace and not any(invocation.workspace.iterdir())
    return invocation.workspace if bare else invocation.scratch
