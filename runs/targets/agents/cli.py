"""Run any program as an agent from a command template (AgentV, CLI Template Execution)."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AliasChoices, Field, field_validator

from evaluators.model import Json
from evaluators.redaction import mask_values
from evaluators.transcripts import PARSERS, UnreadableTranscript, parse
from evaluators.transcripts.agent_streams import is_agent_stream
from evaluators.transcripts.endings import FailedRequest
from evaluators.transcripts.latest import CallsSoFar
from runs.errors import ProviderError
from runs.sandbox.process import SHELL, ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.safe_paths import read_beneath, remove_beneath, write_next_to_workspace
from runs.sandbox.sandbox import Containment, Sandbox
from runs.sandbox.target_roots import Use
from runs.targets.agents.cli_answer import CliAnswer, note_on_end, outage_of, parse_answer
from runs.targets.agents.command_template import TemplateValues, quote, render, uses_placeholder
from runs.targets.agents.program_lookup import advise_on_program, how_to_read, look_up, missing_word
from runs.targets.providers.base import Availability, Invocation, Recording
from runs.targets.providers.healthcheck import (
    CommandHealthcheck,
    HttpHealthcheck,
    Template,
    ask_address,
    ask_command,
)
from runs.targets.providers.options import RETRY_FIELDS, Options, ResolvedTarget, spellings_given
from runs.targets.providers.recent_lines import WrittenLines


@dataclass(frozen=True)
class CliFiles:
    """Files that one invocation writes beside the workspace."""

    scratch: Path
    key: str
    named: bool = True
    """Whether the command knows these files; otherwise they are not read."""

    @cached_property
    def output(self) -> Path:
        """Return the answer's path, under a fresh name."""
        return self.scratch / output_name(self.key)

    @cached_property
    def events(self) -> Path:
        """Return the path for structured events."""
        return self.output.with_name(self.output.name.removesuffix(".json") + "-events.jsonl")

    @cached_property
    def prompt(self) -> Path:
        """Return the path for the prompt."""
        return self.output.with_name(self.output.name.removesuffix(".json") + "-prompt.txt")

    def read_events(self) -> bytes | None:
        """Return the structured events, None if none were written."""
        if not self.named:
            return None
        try:
            return read_beneath(self.scratch, self.events.name, limit=64 << 20) or None
        except OSError:
            return None

    def remove(self) -> None:
        """Remove the prompt and what the command wrote; the directory is removed later."""
        if self.named:
            for path in (self.output, self.events, self.prompt):
                with suppress(OSError):
                    remove_beneath(self.scratch, path.name)


def as_run(cwd: str, command: str, values: Sequence[str]) -> str:
    """Return the working folder and command, with these values masked, quoted or not."""
    words = [quote(value)[1:-1] for value in values]
    return mask_values(f"cwd={cwd} command={command}", (*words, *values))


def output_name(key: str) -> str:
    """Return a fresh name for the file of an answer, as the AgentV specification forms it."""
    slug = re.sub(r"[^\w.-]+", "-", key)[:80] or "unknown"
    return f"agentv-{slug}-{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}.json"


DEFAULT_SECONDS = 30.0
LONGEST_SHOWN = 2000
"""Characters of a command shown in its error."""


class CliOptions(Options):
    """A command and where it runs."""

    unused_fields: ClassVar[frozenset[str]] = RETRY_FIELDS | {"base_url"}

    refuses_unknown: ClassVar[bool] = True
    path_fields: ClassVar[Mapping[str, Use]] = {"cwd": Use.WORK, "read_folders": Use.SHOW}
    starts_in_workspace: ClassVar[frozenset[str]] = frozenset(("cwd",))

    command_template: Template = Field(validation_alias=AliasChoices("command_template", "command"))
    """The command, with placeholders such as {PROMPT} and {OUTPUT_FILE}."""
    files_format: str = Field(
        default="{path}", validation_alias=AliasChoices("files_format", "attachments_format")
    )
    """How a file is written in {FILES}."""
    parser: str | None = None
    """The reader of what the command prints; None for text."""
    cwd: str | None = None
    """The folder where the command runs; by default the eval file's folder, else the workspace."""
    read_folders: tuple[str, ...] = Field(default=(), max_length=20)
    """Folders of the worker that its commands see, read-only, such as the program's own."""
    healthcheck: Annotated[HttpHealthcheck | CommandHealthcheck, Field(discriminator="type")] | None = None
    """An address or a command that must answer before a run starts."""
    verbose: bool = False
    """Whether the rendered command is stored and shown in errors."""

    @field_validator("parser")
    @classmethod
    def _is_reader(cls, value: str | None) -> str | None:
        if value is not None and value not in PARSERS:
            raise ValueError(f"There is no parser '{value}'. Choose one of {', '.join(PARSERS)}.")
        return value

    @field_validator("healthcheck", mode="before")
    @classmethod
    def _one_spelling(cls, value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        return {name: value[key] for name, key in spellings_given(value).items()}


class Cli:
    """Runs the rendered command for each trial, in the trial's sandbox."""

    works_in_folder = True

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, CliOptions):
            raise TypeError(f"{target.name} isn't a cli target")
        self._target = target
        self._options = target.options
        self._containment = containment

    def check(self) -> Availability:
        """Return whether the sandbox and the health check allow a start; without one, look the program up."""
        options = self._options
        if problem := self._containment.agent_problem:
            return Availability(False, problem)
        if options.healthcheck is None:
            return look_up(
                options.command_template,
                self._containment,
                cwd=options.cwd,
                base=self._target.base_folder,
                env=options.env,
                readable=self._read_folders,
            )
        reason = self._unwell()
        if not reason:
            return Availability(True)
        name = self._target.name
        return Availability(
            False,
            f"The health check of the target '{name}' failed: {reason}. Start its dependencies, or fix the check.",
        )

    def invoke(self, invocation: Invocation) -> Recording:
        """Run the command. Raises `ProviderError` if it can't start or, without a workspace, fails."""
        cwd = self._containment.working_folder(
            self._options.cwd,
            invocation.bundle / invocation.spec.folder if invocation.bundle else invocation.workspace,
            invocation.bundle,
            base=self._target.base_folder,
        )
        sandbox = self._sandbox(invocation, cwd)
        files = CliFiles(invocation.scratch, invocation.spec.key, self._names_files)
        command = self._render(invocation, sandbox, files)
        # Report the calls from the events file; output is not reliable.
        if uses_placeholder(self._options.command_template, "EVENTS_FILE"):
            written, calls = WrittenLines(files.events), CallsSoFar("events")
            invocation.watch(lambda: calls.read(written.complete(), missed=written.missed))
        ran = as_run(sandbox.inside(cwd), command, self._target.secrets) if self._options.verbose else ""
        try:
            around = invocation.mcp.around if invocation.mcp else ()
            result = run_process(
                [*around, SHELL, "-c", command] if around else command,
                cwd=cwd,
                env={**self._options.env, **invocation.env},
                timeout_seconds=self._options.time_limit(invocation.timeout_seconds),
                cancelled=invocation.cancelled,
                limits=sandbox.limits,
                sandbox=sandbox,
                grace_seconds=2.0,
                record=invocation.record,
                # What an agent starts can't add events to its stream; a command may itself open its output by name.
                stdout_socket=self._options.parser is not None and "/dev/stdout" not in command,
            )
            outage = FailedRequest()
            if not self._has_answered(result, files):
                outage = outage_of(result, invocation.record)
            self._refuse_failure(result, invocation, ran, outage)
            recording = replace(self._recording(result, invocation, files), service_failure=outage)
            return (
                replace(recording, logs={"command": f"{ran}\n".encode("utf-8", "replace")})
                if ran
                else recording
            )
        finally:
            files.remove()

    def _unwell(self) -> str:
        """Return why the health check failed; empty if it passed or is not set."""
        health = self._options.healthcheck
        if health is None:
            return ""
        seconds = health.timeout_seconds or self._options.time_limit(DEFAULT_SECONDS)
        if isinstance(health, HttpHealthcheck):
            return ask_address(health.url, seconds, self._containment.outbound)
        cwd = health.cwd or self._options.cwd
        return ask_command(
            health.command_template,
            self._containment,
            cwd=cwd,
            base=self._target.base_folder,
            env=self._options.env,
            timeout_seconds=seconds,
            readable=self._read_folders,
        )

    @property
    def _read_folders(self) -> list[Path]:
        """Return the folders that its commands see. Raises `PathRefused`."""
        roots, base = self._containment.targets, self._target.base_folder
        return [roots.place(folder, Use.SHOW, base=base).path for folder in self._options.read_folders]

    @property
    def _names_files(self) -> bool:
        names = ("EVENTS_FILE", "PROMPT_FILE")
        return self._writes_answer or any(
            uses_placeholder(self._options.command_template, name) for name in names
        )

    @property
    def _writes_answer(self) -> bool:
        return uses_placeholder(self._options.command_template, "OUTPUT_FILE")

    def _sandbox(self, invocation: Invocation, cwd: Path) -> Sandbox:
        # Judges' scripts are added to the bundle's files later: read-only.
        bundle = [invocation.bundle] if invocation.bundle else []
        trial_folders = (invocation.workspace, *bundle)
        elsewhere = cwd not in trial_folders and not any(
            cwd.is_relative_to(folder) for folder in trial_folders
        )
        return self._containment.around(
            invocation.workspace,
            invocation.scratch,
            profile=AGENT,
            readable=[
                *invocation.files,
                *bundle,
                *(invocation.mcp.readable if invocation.mcp else ()),
                *self._read_folders,
            ],
            working=cwd if elsewhere else None,
        )

    def _render(self, invocation: Invocation, sandbox: Sandbox, files: CliFiles) -> str:
        if uses_placeholder(self._options.command_template, "PROMPT_FILE"):
            write_next_to_workspace(
                files.prompt.parent, files.prompt.name, invocation.prompt.encode(), "The prompt"
            )
        values = TemplateValues(
            prompt=invocation.prompt,
            prompt_file=sandbox.inside(files.prompt) if files.named else "",
            guidelines=invocation.guidelines,
            eval_id=invocation.spec.key,
            attempt=invocation.attempt,
            files=tuple(sandbox.inside(path) for path in invocation.files),
            output_file=sandbox.inside(files.output) if files.named else "",
            workspace=sandbox.inside(invocation.workspace),
            events_file=sandbox.inside(files.events) if files.named else "",
            model=invocation.model or self._options.model or "",
        )
        command = render(self._options.command_template, values, self._options.files_format)
        return " ".join([command, *map(quote, self._options.args)])

    def _has_answered(self, result: ProcessResult, files: CliFiles) -> bool:
        """Return whether there is an event or an answer in its file; text on standard output may be a log."""
        if files.read_events() is not None:
            return True
        if self._writes_answer and self._answer_text(result, files, []) is not None:
            return True
        if self._options.parser is None:
            return False
        try:
            return bool(parse(self._options.parser, result.stdout).events)
        except UnreadableTranscript:
            return False

    def _refuse_failure(
        self, result: ProcessResult, invocation: Invocation, ran: str, outage: FailedRequest
    ) -> None:
        """Raise for a command that never started; with a workspace, later failures are the agent's own."""
        if missing := missing_word(result, self._options.command_template):
            raise ProviderError(
                f"The target '{self._target.name}' cannot start: {result.summary}. "
                f"{advise_on_program(missing, self._containment)}"
            )
        if invocation.in_workspace or result.cancelled:
            return
        command = f" Command: {ran[:LONGEST_SHOWN]}" if ran else ""
        if result.timed_out:
            seconds = self._options.time_limit(invocation.timeout_seconds)
            raise ProviderError(
                f"The command of the target '{self._target.name}' timed out after {seconds:g} s. "
                f"Raise `timeout_seconds`, or find out what it waits for.{command}",
                kind="timeout",
            )
        if result.exit_code != 0:
            raise ProviderError(
                f"The command of the target '{self._target.name}' ended with exit code {result.exit_code}: "
                f"{result.summary}. Run it by hand to see why.{command}",
                kind="endpoint" if outage.said else "command",
            )

    def _recording(self, result: ProcessResult, invocation: Invocation, files: CliFiles) -> Recording:
        notes = [result.error] if result.error else []
        if not self._has_answered(result, files):
            notes += filter(None, (note_on_end(self._about, result),))
        text = self._answer_text(result, files, notes)
        if text is None and notes and not invocation.in_workspace and not result.cancelled:
            raise ProviderError(
                f"{notes[-1]} Let the command write its answer to {{OUTPUT_FILE}}.", kind="command"
            )
        parser = self._options.parser
        read = parse_answer(text) if parser is None else CliAnswer(text)
        answer, trace = read.text, read.trace
        unread = self._unread(answer) if parser is None else ""
        events = files.read_events()
        traced = trace is not None and not events
        if trace is not None and traced:
            events = b"\n".join(json.dumps(event).encode() for event in trace)
        return Recording(
            raw=result.output if parser is None else result.stdout,
            parser=parser or "plain_text",
            events=events,
            events_are_trace=traced,
            answer="" if unread else answer,
            unread_stream=unread,
            how_to_read=how_to_read(self._options.command_template),
            usage=read.usage,
            cost_usd=read.cost_usd,
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            cancelled=result.cancelled,
            seconds=result.seconds,
            truncated=result.truncated,
            stderr=result.stderr.decode("utf-8", "replace"),
            notes=tuple(notes),
            program=self._about,
            was_stopped=bool(result.error),
        )

    @property
    def _about(self) -> str:
        """The command as the subject of a sentence."""
        return f"The command of the target '{self._target.name}'"

    def _unread(self, answer: str | None) -> str:
        """Return why a stream of events isn't an answer, in a sentence; empty for any other text."""
        if answer is None or not is_agent_stream(answer):
            return ""
        return (
            f"The answer of the target '{self._target.name}' is a stream of JSON lines, which no reader has read. "
            f"{how_to_read(self._options.command_template)}"
        )

    def _answer_text(self, result: ProcessResult, files: CliFiles, notes: list[str]) -> str | None:
        """Return the answer; None if the command wrote none, or if the reader finds it in the stream."""
        if not self._writes_answer:
            return None if self._options.parser else result.stdout.decode("utf-8", "replace")
        try:
            return read_beneath(files.output.parent, files.output.name).decode("utf-8", "replace")
        except OSError as error:
            notes.append(f"The command wrote no answer: {error.strerror}.")
            return None
