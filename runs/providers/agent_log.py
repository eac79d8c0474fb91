"""The log of an agent's program, written while it works."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from evaluators.model import Json
from evaluators.redaction import mask_values
from runs.providers.base import Invocation

LogFormat = Literal["summary", "json"]
_LONGEST = 400


class AgentLog:
    """Lines of both streams with the time since the start, values of variables masked."""

    def __init__(
        self,
        path: Path,
        heading: dict[str, str],
        *,
        format: LogFormat = "summary",
        secrets: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._format = format
        self._secrets = secrets
        self._clock = clock
        self._began = clock()
        self._rest: dict[str, bytes] = {}
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._file.writelines(f"# {name}: {value}\n" for name, value in heading.items())

    def __enter__(self) -> AgentLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        """Write the lines that are complete."""
        *lines, self._rest[stream] = (self._rest.get(stream, b"") + chunk).split(b"\n")
        for line in lines:
            self._write(stream, line)

    def close(self) -> None:
        """Write what is left and close the file."""
        for stream, line in self._rest.items():
            self._write(stream, line)
        self._file.close()

    def _write(self, stream: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        seconds = int(self._clock() - self._began)
        told = mask_values(_told(text, self._format), self._secrets)
        self._file.write(f"[+{seconds // 60:02}:{seconds % 60:02}] [{stream}] {told}\n")


def log_path(folder: Path, target: str, invocation: Invocation) -> Path:
    """Return a file name of its own for the log of one trial."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-%f")
    words = (target, invocation.key, f"trial-{invocation.trial}", f"attempt-{invocation.attempt}")
    name = "_".join(
        "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in word) for word in words
    )
    return folder / f"{moment}_{name[:150]}.log"


def _told(text: str, format: LogFormat) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if format == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    return _summary(value) if isinstance(value, dict) else text


def _summary(value: dict[str, Json]) -> str:
    """Return what an event is, with the first words of what it holds."""
    item = value.get("item", value.get("part"))
    holder = item if isinstance(item, dict) else value
    kind = f"{value.get('type', 'event')} {holder.get('type', '') if holder is item else ''}".strip()
    found = (holder.get(name) for name in ("text", "command", "message", "tool", "error", "result"))
    said = next((text for text in found if isinstance(text, str) and text), "")
    return f"{kind}: {' '.join(said.split())[:_LONGEST]}" if said else kind
