"""Manage a `cli` command's files beside the workspace."""

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
from runs.sandbox.safe_paths import read_beneath, remove_beneath
from runs.targets.agents.command_template import quote


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

    def read_events(self) -> bytes | None:
        """Return the structured events, None if none were written."""
        if not self.named:
            return None
        try:
            return read_beneath(self.scratch, self.events.name, limit=64 << 20) or None
        except OSError:
            return None

    def remove(self) -> None:
        """Remove the files that the command wrote; the directory is removed later."""
        if self.named:
            for path in (self.output, self.events):
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
