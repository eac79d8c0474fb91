"""Hand many requests to an agent in an editor as one document; its answers are files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from evaluators.model import Json
from runs.errors import ProviderError
from runs.sandbox.safe_paths import make_folder_beneath, read_beneath, write_beneath
from runs.sandbox.sandbox import Sandbox
from runs.targets.agents.editor_exchange import Exchange, batch_text, made_root, request_text
from runs.targets.providers.base import BatchedAnswer, BatchProgress, Invocation, Recording


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
