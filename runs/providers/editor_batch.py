"""Many requests handed to an agent in an editor as one document, whose answers come as files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from evaluators.model import Json
from runs.providers.base import BatchedAnswer, BatchProgress, Invocation, ProviderError, Recording
from runs.providers.editor_exchange import Exchange, batch_text, request_text

if TYPE_CHECKING:  # runs.containment.sandbox imports this package
    from runs.containment.sandbox import Sandbox

_INDEX = "batch.json"


class Editor(Protocol):
    """What a batch needs of the provider of an editor."""

    def sandbox(self, invocation: Invocation, messages: Path) -> Sandbox: ...

    def prompt(self, invocation: Invocation, sandbox: Sandbox) -> str: ...

    def commands(self, invocation: Invocation, request: Path, sandbox: Sandbox) -> list[list[str]]: ...

    def dispatch(self, commands: Sequence[list[str]], invocation: Invocation, sandbox: Sandbox) -> None: ...


@dataclass(frozen=True)
class EditorBatches:
    """Batches of one target; each is a folder under `root`, and its name is the batch's id."""

    root: Path
    editor: Editor

    def submit_batch(self, invocations: Mapping[str, Invocation]) -> str:
        """Write every request and hand all of them over in one chat; the longest time limit holds for all."""
        name = f"batch-{uuid4().hex[:12]}"
        folder = (self.root / name).absolute()
        first = _whole(folder, list(invocations.values()))
        sandbox = self.editor.sandbox(first, folder / "messages")
        exchanges = {id: self._written(each, folder, sandbox) for id, each in invocations.items()}
        together = Exchange.new(folder / "messages")
        together.request.write_text(batch_text(list(exchanges.values()), sandbox.inside), encoding="utf-8")
        answers = {id: exchange.response.name for id, exchange in exchanges.items()}
        index = {"until": time.time() + first.timeout_seconds, "answers": answers}
        (folder / _INDEX).write_text(json.dumps(index), encoding="utf-8")
        commands = self.editor.commands(first, together.request, sandbox)
        self.editor.dispatch(commands, first, sandbox)
        return name

    def poll_batch(self, external_id: str) -> BatchProgress:
        """Tell whether every answer is there, or the time for them is over."""
        index = self._index(external_id)
        if index.get("cancelled"):
            return BatchProgress(failed="The batch was cancelled.")
        missing = [name for name in index["answers"].values() if not self._answer(external_id, name).answered]
        return BatchProgress(ended=not missing or time.time() >= index["until"])

    def fetch_batch(self, external_id: str) -> Mapping[str, BatchedAnswer]:
        """Return the answers that are there, and a sentence for each that is not."""
        answers = self._index(external_id)["answers"]
        return {id: _fetched(self._answer(external_id, name)) for id, name in answers.items()}

    def cancel_batch(self, external_id: str) -> None:
        """Wait for no more of its answers; what the agent does already it goes on doing."""
        index = {**self._index(external_id), "cancelled": True}
        (self.root / external_id / _INDEX).write_text(json.dumps(index), encoding="utf-8")

    def _written(self, invocation: Invocation, folder: Path, sandbox: Sandbox) -> Exchange:
        exchange = Exchange.new(folder / "messages")
        text = request_text(self.editor.prompt(invocation, sandbox), exchange, sandbox.inside)
        exchange.request.write_text(text, encoding="utf-8")
        return exchange

    def _answer(self, batch: str, name: str) -> Exchange:
        place = self.root / batch / "messages" / name
        return Exchange(place, place, place)

    def _index(self, batch: str) -> dict[str, Json]:
        try:
            found: dict[str, Json] = json.loads((self.root / batch / _INDEX).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ProviderError(
                f"The batch {batch} is not at {self.root}: {error}. Start the run again.", kind="command"
            ) from error
        return found


def _whole(folder: Path, invocations: Sequence[Invocation]) -> Invocation:
    """Return what holds for the batch: a workspace of its own, and every file that one of them names."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    return replace(
        invocations[0],
        workspace=workspace,
        scratch=folder,
        timeout_seconds=max(each.timeout_seconds for each in invocations),
        files=tuple(dict.fromkeys(path for each in invocations for path in each.files)),
        guideline_files=tuple(dict.fromkeys(path for each in invocations for path in each.guideline_files)),
    )


def _fetched(exchange: Exchange) -> BatchedAnswer:
    if not exchange.answered:
        return BatchedAnswer(error="The agent gave no answer in time.")
    raw = exchange.answer()
    return BatchedAnswer(Recording(raw=raw, answer=raw.decode("utf-8", "replace"), exit_code=0))
