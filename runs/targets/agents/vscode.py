"""An agent in Visual Studio Code (AgentV evaluation, VS Code provider)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import ClassVar

from pydantic import AliasChoices, Field

from runs.errors import ProviderError
from runs.sandbox.sandbox import Containment, Sandbox
from runs.sandbox.target_roots import AllowedPath, Use
from runs.targets.agents.agent_program import AgentProgram
from runs.targets.agents.editor_batch import EditorBatches
from runs.targets.agents.editor_exchange import Exchange, made_root, request_text, workspace_text
from runs.targets.providers.base import Availability, Batching, Invocation, Recording
from runs.targets.providers.options import RETRY_FIELDS, Options, ResolvedTarget
from runs.targets.providers.preread import preread_prompt

_DISPATCH = threading.Lock()
"""A request goes to the focused window, so this process sends one at a time."""


class VscodeOptions(Options):
    """How to start Visual Studio Code, and whether to wait for its answer."""

    unused_fields: ClassVar[frozenset[str]] = RETRY_FIELDS | {"base_url"}

    path_fields: ClassVar[Mapping[str, Use]] = {
        "command": Use.RUN,
        "workspace_template": Use.READ,
        "subagent_root": Use.WRITE,
    }

    command: str = Field(default="code", min_length=1, validation_alias=AliasChoices("vscode_cmd", "command"))
    workspace_template: str | None = None
    wait_for_response: bool = Field(default=True, validation_alias=AliasChoices("wait", "wait_for_response"))
    dry_run: bool = False
    subagent_root: str | None = None


class VscodeInsidersOptions(VscodeOptions):
    """The Insiders edition, which has a different command."""

    command: str = Field(
        default="code-insiders", min_length=1, validation_alias=AliasChoices("vscode_cmd", "command")
    )


class Vscode:
    """Opens the trial's workspace in the editor, sends its agent a document and waits for the answer's file."""

    works_in_folder = True

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, VscodeOptions):
            raise TypeError(f"{target.name} isn't a vscode target")
        self._target = target
        self._options = target.options
        self._containment = containment
        self._program = AgentProgram("Visual Studio Code", self._options.command, target, containment)

    def check(self) -> Availability:
        """Return whether the editor's command exists; a dry run needs none."""
        return Availability(True) if self._options.dry_run else self._program.check()

    @property
    def batching(self) -> Batching | str:
        """Return the client that submits many requests as one."""
        folder = self._options.subagent_root
        root = self._place(folder, Use.WRITE).path if folder else Path(gettempdir(), "evalhub-vscode")
        return EditorBatches(root, self)

    def invoke(self, invocation: Invocation) -> Recording:
        """Return the agent's answer.

        Raises `ProviderError` where the editor cannot be started, and where only the answer counts and none
        came in time.
        """
        began = time.monotonic()
        exchange = self._exchange(invocation)
        sandbox = self.sandbox(invocation, exchange.request.parent)
        request = request_text(self.prompt(invocation, sandbox), exchange, sandbox.inside)
        exchange.write(exchange.request, request)
        commands = self.commands(invocation, exchange, sandbox)
        if self._options.dry_run:
            return _record_request(exchange, request, commands, dry_run=True)
        self.dispatch(commands, invocation, sandbox)
        if not self._options.wait_for_response:
            return _record_request(exchange, request, commands, dry_run=False)
        limit = self._options.time_limit(invocation.timeout_seconds)
        if not exchange.wait(limit - (time.monotonic() - began), invocation.cancelled):
            return self._given_up(invocation, limit, time.monotonic() - began)
        raw = exchange.answer()
        return Recording(
            raw=raw,
            answer=raw.decode("utf-8", "replace"),
            exit_code=0,
            seconds=time.monotonic() - began,
            logs={"request": request.encode("utf-8", "replace")},
        )

    def sandbox(self, invocation: Invocation, messages: Path) -> Sandbox:
        """Return the sandbox of the editor's command."""
        elsewhere = not messages.is_relative_to(invocation.scratch)
        return self._program.sandbox(
            invocation, invocation.workspace, writable=[messages] if elsewhere else []
        )

    def prompt(self, invocation: Invocation, sandbox: Sandbox) -> str:
        """Return the question, preceded by the mandatory list of files to read."""
        return preread_prompt(
            invocation.prompt,
            guidelines=[sandbox.inside(path) for path in invocation.guideline_files],
            files=[sandbox.inside(path) for path in invocation.files],
            kind="attachment",
        )

    def commands(self, invocation: Invocation, exchange: Exchange, sandbox: Sandbox) -> list[list[str]]:
        """Return the arguments of both commands: open the workspace, then send the request to the chat."""
        template = self._options.workspace_template
        request, written = exchange.request, exchange.workspace_file
        place = self._place(template, Use.READ) if template else None
        exchange.write(written, workspace_text(place, sandbox.inside(invocation.workspace)))
        attached = [*invocation.guideline_files, *invocation.files, request]
        files = [word for path in dict.fromkeys(attached) for word in ("-a", sandbox.inside(path))]
        chat = ["-r", "chat", "-m", "agent", *files, f"Follow the instructions in {request.name}"]
        return [[*self._options.args, sandbox.inside(written)], [*self._options.args, *chat]]

    def dispatch(self, commands: Sequence[list[str]], invocation: Invocation, sandbox: Sandbox) -> None:
        """Start the editor's command. Raises `ProviderError` if that fails."""
        with _DISPATCH:
            for command in commands:
                result = self._program.run(
                    command, invocation, sandbox, cwd=invocation.workspace, env=self._options.env
                )
                if result.exit_code != 0 and not result.cancelled:
                    output = (
                        (result.stderr or result.stdout).decode("utf-8", "replace").strip()[-500:].rstrip(".")
                    )
                    raise ProviderError(
                        f"Visual Studio Code of the target '{self._target.name}' did not take the request: "
                        f"{output or result.error.rstrip('.') or 'no output'}. Start the editor on the "
                        "worker's desktop, or correct `vscode_cmd`."
                    )

    def _exchange(self, invocation: Invocation) -> Exchange:
        root = self._options.subagent_root
        if not root:
            return Exchange.new(invocation.scratch, "subagent/messages")
        return Exchange.new(made_root(self._place(root, Use.WRITE).path), "messages")

    def _place(self, path: str, use: Use) -> AllowedPath:
        return self._containment.targets.place(path, use, base=self._target.base_folder)

    def _given_up(self, invocation: Invocation, limit: float, seconds: float) -> Recording:
        if invocation.cancelled():
            return Recording(cancelled=True, seconds=seconds)
        sentence = f"The agent in Visual Studio Code gave no answer within {limit:g} s."
        if not invocation.in_workspace:
            raise ProviderError(f"{sentence} Raise `timeout_seconds`.", kind="timeout")
        return Recording(timed_out=True, seconds=limit, notes=(sentence,))


def _record_request(
    exchange: Exchange, request: str, commands: Sequence[list[str]], *, dry_run: bool
) -> Recording:
    """Return a recording of the request that was, or would have been, sent; it has no answer."""
    summary = {
        "dry_run": dry_run,
        "request_file": str(exchange.request),
        "response_file": str(exchange.response),
        "commands": list(commands),
    }
    note = "A dry run: nothing was sent." if dry_run else "Sent without waiting for the answer."
    raw = json.dumps(summary, indent=2).encode()
    logs = {"request": request.encode("utf-8", "replace")}
    return Recording(raw=raw, answer="", exit_code=0, notes=(note,), logs=logs)
