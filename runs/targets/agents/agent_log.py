"""Write the log of an agent's program while it runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from evalhub.lib.limits import LARGEST_MESSAGE, LONGEST_ERROR
from evaluators.json_values import indent_json
from evaluators.model import Json
from evaluators.redaction import mask_values
from runs.sandbox.streams import Capture
from runs.targets.providers.base import Invocation
from runs.targets.providers.recent_lines import SplitLines

LogFormat = Literal["summary", "json"]


class AgentLog:
    """Lines of both streams with their time, values of variables masked.

    Kept in memory, and also written to a new file if the target has a log folder.
    """

    def __init__(
        self,
        heading: dict[str, str],
        *,
        file: int | None = None,
        path: str = "",
        format: LogFormat = "summary",
        secrets: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        """The file's path, for display; empty without one."""
        self._format = format
        self._secrets = secrets
        self._clock = clock
        self._began = clock()
        self._split = {"stdout": SplitLines(), "stderr": SplitLines()}
        self._kept = Capture(LARGEST_MESSAGE)
        self._file = None if file is None else os.fdopen(file, "wb", buffering=0)
        for name, value in heading.items():
            self._add(f"# {name}: {value}\n")

    @property
    def content(self) -> bytes:
        """Return the log so far."""
        return self._kept.content()

    def __enter__(self) -> AgentLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        """Write complete lines."""
        for line in self._split[stream].take(chunk):
            self._write(stream, line)

    def close(self) -> None:
        """Write the rest and close the file."""
        for stream, split in self._split.items():
            self._write(stream, split.rest())
        if self._file is not None:
            self._file.close()

    def _write(self, stream: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        seconds = int(self._clock() - self._began)
        shown = mask_values(_event_lines(text, self._format), self._secrets)
        self._add(f"[+{seconds // 60:02}:{seconds % 60:02}] [{stream}] {shown}\n")

    def _add(self, text: str) -> None:
        line = text.encode("utf-8", "replace")
        self._kept.add(line)
        if self._file is not None:
            self._file.write(line)


def log_name(target: str, invocation: Invocation) -> str:
    """Return a unique file name for one trial's log."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-%f")
    words = (target, invocation.spec.key, f"trial-{invocation.trial}", f"attempt-{invocation.attempt}")
    name = "_".join(
        "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in word) for word in words
    )
    return f"{moment}_{name[:150]}.log"


def _event_lines(text: str, format: LogFormat) -> str:
    try:
        value = json.loads(text)
        if format == "json":
            # An event may become so many times as long by its indentation.
            return indent_json(value, most=1000 + 10 * len(text))
    except (ValueError, RecursionError):
        return text
    return _summary(value) if isinstance(value, dict) else text


def _summary(value: dict[str, Json]) -> str:
    """Return an event's kind with the start of its text."""
    item = value.get("item", value.get("part"))
    holder = item if isinstance(item, dict) else value
    kind = f"{value.get('type', 'event')} {holder.get('type', '') if holder is item else ''}".strip()
    texts = (holder.get(name) for name in ("text", "command", "message", "tool", "error", "result"))
    text = next((text for text in texts if isinstance(text, str) and text), "")
    return f"{kind}: {' '.join(text.split())[:LONGEST_ERROR]}" if text else kind
