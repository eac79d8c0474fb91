"""Files of one command of a `cli` target, beside the workspace."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluators.redaction import mask_values
from runs.containment.beneath import read_beneath, remove_beneath
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
        if not self.named:
            return None
        try:
            return read_beneath(self.scratch, self.events.name, limit=64 << 20) or None
        except OSError:
            return None

    def remove(self) -> None:
        """Remove what the command wrote; what is no file goes with the whole directory."""
        if self.named:
            for path in (self.output, self.events):
                with suppress(OSError):
                    remove_beneath(self.scratch, path.name)


def as_run(cwd: str, command: str, values: Sequence[str]) -> str:
    """Return where and what was run, without these values as they are and as the words of a shell that they became."""
    words = [quote(value)[1:-1] for value in values]
    return mask_values(f"cwd={cwd} command={command}", (*words, *values))


def output_name(key: str) -> str:
    """Return a fresh name for the file of an answer, as the AgentV specification forms it."""
    slug = re.sub(r"[^\w.-]+", "-", key)[:80] or "unknown"
    return f"agentv-{slug}-{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}.json"
