"""Requests to an agent in an editor and its answers, as files: one asks in a document and answers in another."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from evaluators.model import Json
from runs.containment.beneath import read_beneath
from runs.providers.base import ProviderError
from runs.providers.preread import link

LOOK_SECONDS = 0.1
LONGEST_ANSWER = 16 << 20


@dataclass(frozen=True)
class Exchange:
    """A request and where its answer comes; the agent writes `partial` and renames it when it is done."""

    request: Path
    partial: Path
    response: Path

    @classmethod
    def new(cls, folder: Path) -> Exchange:
        """Return an exchange under fresh names."""
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:8]}"
        return cls(*(folder / f"{name}_{end}.md" for end in ("req", "res.tmp", "res")))

    @property
    def answered(self) -> bool:
        """Whether the answer is there."""
        return self.response.is_file()

    def answer(self) -> bytes:
        """Return the answer. Raises `ProviderError` where it cannot be read."""
        try:
            return read_beneath(self.response.parent, self.response.name, limit=LONGEST_ANSWER)
        except OSError as error:
            raise ProviderError(
                f"The agent's answer at {self.response} cannot be read: {error.strerror}. "
                "Let it write a plain file.",
                kind="command",
            ) from error

    def wait(self, seconds: float, cancelled: Callable[[], bool]) -> bool:
        """Wait for the answer, and return whether it came before time ran out or somebody cancelled."""
        end = time.monotonic() + seconds
        while not self.answered:
            if cancelled() or time.monotonic() >= end:
                return False
            time.sleep(LOOK_SECONDS)
        return True


def request_text(prompt: str, exchange: Exchange, inside: Callable[[Path], str]) -> str:
    """Return the document of a request; `inside` gives the paths that the agent sees."""
    partial, response = inside(exchange.partial), inside(exchange.response)
    return (
        f"[[ ## task ## ]]\n\n{prompt}\n\n[[ ## system_instructions ## ]]\n\n"
        f"Put your whole answer into the file {partial}. When it is complete, and not before, "
        f"rename that file to {response}. Nothing else is read of what you say.\n"
    )


def batch_text(exchanges: Sequence[Exchange], inside: Callable[[Path], str]) -> str:
    """Return the document that hands over many requests at once."""
    listed = "\n".join(f"* {link(inside(exchange.request))}" for exchange in exchanges)
    return (
        "[[ ## task ## ]]\n\n"
        "Carry out each of these requests by a subagent of its own, which reads nothing of the others:\n"
        f"{listed}\n\n[[ ## system_instructions ## ]]\n\n"
        "Each request says where its answer belongs. You are done when every answer is there.\n"
    )


def workspace_text(template: Path | None, folder: str) -> str:
    """Return a workspace file for a folder, with the settings and further folders of a template.

    Raises `ProviderError` (kind `configuration`) where the template is not JSON.
    """
    told = _template(template) if template else {}
    others = told.get("folders")
    further = [_absolute(each, template) for each in others] if isinstance(others, list) and template else []
    return json.dumps({**told, "folders": [{"path": folder}, *further]}, indent=2)


def _template(path: Path) -> dict[str, Json]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProviderError(
            f"The workspace template {path} cannot be used: {error}. Give `workspace_template` a file of JSON.",
            kind="configuration",
        ) from error
    return value if isinstance(value, dict) else {}


def _absolute(folder: Json, template: Path) -> Json:
    if not isinstance(folder, dict) or not isinstance(folder.get("path"), str):
        return folder
    return {**folder, "path": str(template.parent / folder["path"])}
