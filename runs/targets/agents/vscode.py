"""An agent in Visual Studio Code (AgentV evaluation, VS Code provider): requests and answers are files, one or many."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import ClassVar, Protocol
from uuid import uuid4

from pydantic import AliasChoices, Field

from evalhub.lib.limits import LARGEST_FILE, LARGEST_MESSAGE
from evaluators.model import Json
from runs.errors import ProviderError
from runs.sandbox.safe_paths import exists_beneath, make_folder_beneath, read_beneath, write_beneath
from runs.sandbox.sandbox import Containment, Sandbox
from runs.sandbox.target_roots import AllowedPath, Use
from runs.targets.agents.agent_program import AgentProgram
from runs.targets.providers.base import (
    Availability,
    BatchedAnswer,
    Batching,
    BatchProgress,
    Invocation,
    Recording,
)
from runs.targets.providers.options import RETRY_FIELDS, Options, ResolvedTarget
from runs.targets.providers.preread import markdown_link, preread_prompt

LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Exchange:
    """A request and the path of its answer; the agent writes `partial` and renames it when it is done."""

    root: Path
    """Chosen by the worker; the agent may have made what is inside."""
    folder: str
    name: str

    @classmethod
    def new(cls, root: Path, folder: str) -> Exchange:
        """Create a folder beneath `root` and return an exchange with fresh names in it. Raises `ProviderError`."""
        try:
            make_folder_beneath(root, folder)
        except OSError as error:
            raise _no_place(root / folder, error) from error
        return cls(root, folder, f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:8]}")

    @property
    def request(self) -> Path:
        """The request's document."""
        return self.root / self.folder / f"{self.name}_req.md"

    @property
    def workspace_file(self) -> Path:
        """The workspace file that the editor opens first."""
        return self.root / self.folder / f"{self.name}_req.code-workspace"

    @property
    def partial(self) -> Path:
        """Where the agent writes its answer."""
        return self.root / self.folder / f"{self.name}_res.tmp.md"

    @property
    def response(self) -> Path:
        """Where the complete answer is."""
        return self.root / self.folder / f"{self.name}_res.md"

    def write(self, path: Path, text: str) -> None:
        """Write a new file of the exchange. Raises `ProviderError`."""
        try:
            write_beneath(self.root, self._beneath(path), text.encode("utf-8", "replace"))
        except OSError as error:
            raise _no_place(path, error) from error

    @property
    def answered(self) -> bool:
        """Whether a file, or anything else, has the answer's name."""
        try:
            return exists_beneath(self.root, self._beneath(self.response))
        except OSError:
            # A link out of the folder or in a circle: reading it raises the error.
            return True

    def answer(self) -> bytes:
        """Return the answer. Raises `ProviderError` if it can't be read."""
        try:
            return read_beneath(self.root, self._beneath(self.response), limit=LARGEST_MESSAGE)
        except OSError as error:
            raise ProviderError(
                f"The agent's answer at {self.response} cannot be read: {error.strerror}. "
                "Let it write a plain file.",
                kind="command",
            ) from error

    def _beneath(self, path: Path) -> str:
        return f"{self.folder}/{path.name}"

    def wait(self, seconds: float, cancelled: Callable[[], bool]) -> bool:
        """Wait for the answer; return False on timeout or cancellation."""
        end = time.monotonic() + seconds
        while not self.answered:
            if cancelled() or time.monotonic() >= end:
                return False
            time.sleep(LOOK_SECONDS)
        return True


def made_root(path: Path) -> Path:
    """Return the absolute path of a folder for exchanges, created if missing. Raises `ProviderError`."""
    root = path.absolute()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _no_place(root, error) from error
    return root


def _no_place(path: Path, error: OSError) -> ProviderError:
    return ProviderError(
        f"The request to the agent cannot be written to {path}: {error.strerror}. "
        "Let the setup commands leave that name free, or correct `subagent_root`.",
        kind="setup",
    )


def request_text(prompt: str, exchange: Exchange, inside: Callable[[Path], str]) -> str:
    """Return the document of a request; `inside` maps paths to those that the agent sees."""
    partial, response = inside(exchange.partial), inside(exchange.response)
    return (
        f"[[ ## task ## ]]\n\n{prompt}\n\n[[ ## system_instructions ## ]]\n\n"
        f"Put your whole answer into the file {partial}. When it is complete, and not before, "
        f"rename that file to {response}. Nothing else is read of what you say.\n"
    )


def batch_text(exchanges: Sequence[Exchange], inside: Callable[[Path], str]) -> str:
    """Return the document that contains many requests."""
    listed = "\n".join(f"* {markdown_link(inside(exchange.request))}" for exchange in exchanges)
    return (
        "[[ ## task ## ]]\n\n"
        "Carry out each of these requests by a subagent of its own, which reads nothing of the others:\n"
        f"{listed}\n\n[[ ## system_instructions ## ]]\n\n"
        "Each request says where its answer belongs. You are done when every answer is there.\n"
    )


def workspace_text(template: AllowedPath | None, folder: str) -> str:
    """Return a workspace file for a folder, with the settings and further folders of a template.

    Raises `ProviderError` (kind `configuration`) where the template is not JSON.
    """
    workspace = _template(template) if template else {}
    others = workspace.get("folders")
    further = (
        [_absolute(each, template.path) for each in others] if isinstance(others, list) and template else []
    )
    return json.dumps({**workspace, "folders": [{"path": folder}, *further]}, indent=2)


def _template(place: AllowedPath) -> dict[str, Json]:
    try:
        value = json.loads(place.read(limit=LARGEST_FILE))
    except (OSError, ValueError) as error:
        raise ProviderError(
            f"The workspace template {place.path} cannot be used: {error}. Give `workspace_template` a file of JSON.",
            kind="configuration",
        ) from error
    return value if isinstance(value, dict) else {}


def _absolute(folder: Json, template: Path) -> Json:
    if not isinstance(folder, dict) or not isinstance(folder.get("path"), str):
        return folder
    return {**folder, "path": str(template.parent / folder["path"])}


class BatchEditor(Protocol):
    """What a batch needs from an editor's provider."""

    def sandbox(self, invocation: Invocation, messages: Path) -> Sandbox: ...

    def prompt(self, invocation: Invocation, sandbox: Sandbox) -> str: ...

    def commands(self, invocation: Invocation, exchange: Exchange, sandbox: Sandbox) -> list[list[str]]: ...

    def dispatch(self, commands: Sequence[list[str]], invocation: Invocation, sandbox: Sandbox) -> None: ...


@dataclass(frozen=True)
class EditorBatches:
    """Batches of one target; each is a folder under `root`, and its name is the batch's id.

    What a batch is lies beside its folder, where the agent cannot write.
    """

    root: Path
    editor: BatchEditor

    def submit_batch(self, invocations: Mapping[str, Invocation]) -> str:
        """Write every request and submit all of them in one chat; the longest time limit applies to all."""
        name = f"batch-{uuid4().hex[:12]}"
        root = made_root(self.root)
        make_folder_beneath(root, f"{name}/workspace")
        # The batch has its own workspace, and every file that one of the requests names.
        every = list(invocations.values())
        first = replace(
            every[0],
            workspace=root / name / "workspace",
            scratch=root / name,
            timeout_seconds=max(invocation.timeout_seconds for invocation in every),
            files=tuple(dict.fromkeys(path for invocation in every for path in invocation.files)),
            guideline_files=tuple(
                dict.fromkeys(path for invocation in every for path in invocation.guideline_files)
            ),
        )
        sandbox = self.editor.sandbox(first, root / name / "messages")
        exchanges = {
            id: _write_batch(self.editor, invocation, root, name, sandbox)
            for id, invocation in invocations.items()
        }
        together = Exchange.new(root, f"{name}/messages")
        together.write(together.request, batch_text(list(exchanges.values()), sandbox.inside))
        answers = {id: exchange.name for id, exchange in exchanges.items()}
        index = {"until": time.time() + first.timeout_seconds, "answers": answers}
        self._write_index(name, index)
        commands = self.editor.commands(first, together, sandbox)
        self.editor.dispatch(commands, first, sandbox)
        return name

    def poll_batch(self, external_id: str) -> BatchProgress:
        """Return the batch's progress; it ends with the last answer or at the time limit."""
        index = self._index(external_id)
        if index.get("cancelled"):
            return BatchProgress(failed="The batch was cancelled.")
        missing = [name for name in index["answers"].values() if not self._answer(external_id, name).answered]
        return BatchProgress(ended=not missing or time.time() >= index["until"])

    def fetch_batch(self, external_id: str) -> Mapping[str, BatchedAnswer]:
        """Return the answers, and a sentence for each that is missing."""
        answers = self._index(external_id)["answers"]
        return {id: _fetch_answer(self._answer(external_id, name)) for id, name in answers.items()}

    def cancel_batch(self, external_id: str) -> None:
        """Stop waiting for answers; the agent finishes what it has begun."""
        index = {**self._index(external_id), "cancelled": True}
        self._write_index(external_id, index)

    def _write_index(self, batch: str, index: Json) -> None:
        try:
            write_beneath(made_root(self.root), f"{batch}.json", json.dumps(index).encode(), replace=True)
        except OSError as error:
            raise self._batch_lost(batch, error) from error

    def _answer(self, batch: str, name: str) -> Exchange:
        return Exchange(self.root.absolute(), f"{batch}/messages", name)

    def _index(self, batch: str) -> dict[str, Json]:
        try:
            index: dict[str, Json] = json.loads(read_beneath(self.root.absolute(), f"{batch}.json"))
        except (OSError, ValueError) as error:
            raise self._batch_lost(batch, error) from error
        return index

    def _batch_lost(self, batch: str, error: Exception) -> ProviderError:
        return ProviderError(
            f"The batch {batch} is not at {self.root}: {error}. Start the run again.", kind="command"
        )


def _write_batch(
    editor: BatchEditor, invocation: Invocation, root: Path, batch: str, sandbox: Sandbox
) -> Exchange:
    exchange = Exchange.new(root, f"{batch}/messages")
    exchange.write(
        exchange.request, request_text(editor.prompt(invocation, sandbox), exchange, sandbox.inside)
    )
    return exchange


def _fetch_answer(exchange: Exchange) -> BatchedAnswer:
    if not exchange.answered:
        return BatchedAnswer(error="The agent gave no answer in time.")
    raw = exchange.answer()
    return BatchedAnswer(Recording(raw=raw, answer=raw.decode("utf-8", "replace"), exit_code=0))


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
