"""Files of one command of a `cli` target, beside the workspace."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluators.redaction import mask_values
from runs.containment.beneath import read_beneath
from runs.providers.command_template import quote


@dataclass(frozen=True)
class CliFiles:
    """Where one invocation writes beside the workspace."""

    scratch: Path
    key: str
    named: bool = True
    """Whether the command is told of the files; of names that it was not told nothing is looked for."""

    @cached_property
    def output(self) -> Path:
        """Where the answer goes, under a fresh name."""
        return self.scratch / output_name(self.key)

    @cached_property
    def events(self) -> Path:
        """Where structured events go."""
        return self.output.with_name(self.output.name.removesuffix(".json") + "-events.jsonl")

    def told(self) -> bytes | None:
        """The structured events, None where nothing was written."""
        if not (self.named and self.events.exists()):
            return None
        try:
            return read_beneath(self.scratch, self.events.name, limit=64 << 20) or None
        except OSError:
            return None

    def keep(self, ran: str) -> Path:
        """Write down what was run, and return where; the command could write here, so the name is new to it."""
        path = self.scratch / f"command-{secrets.token_hex(8)}.log"
        with path.open("x", encoding="utf-8", errors="replace") as stream:
            stream.write(f"{ran}\n")
        return path

    def remove(self) -> None:
        """Remove what the command wrote."""
        if self.named:
            self.output.unlink(missing_ok=True)
            self.events.unlink(missing_ok=True)


def as_run(cwd: str, command: str, values: Sequence[str]) -> str:
    """Return where and what was run, without these values as they are and as the words of a shell that they became."""
    words = [quote(value)[1:-1] for value in values]
    return mask_values(f"cwd={cwd} command={command}", (*words, *values))


def output_name(key: str) -> str:
    """Return a fresh name for the file of an answer, as the AgentV specification forms it."""
    slug = re.sub(r"[^\w.-]+", "-", key)[:80] or "unknown"
    return f"agentv-{slug}-{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}.json"
