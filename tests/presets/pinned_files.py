"""Pinned JSON files: what differs from them fails, unless they are written anew."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "pinned"
WRITES = "EVALHUB_WRITE_PRESETS"
"""The environment variable with which a test writes its file."""
WIDTH = 110
"""Characters of a line of a pinned file, unless one value is longer."""
SHOWN = 40
"""Lines of a difference."""


def check(name: str, value: Any) -> None:
    """Compare a value with the pinned file of this name, or write it; fail with the lines that differ."""
    path, text = FOLDER / f"{name}.json", write(value)
    if os.environ.get(WRITES):
        path.write_text(text, encoding="utf-8")
        return
    pinned = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = list(
        difflib.unified_diff(pinned.splitlines(), text.splitlines(), "pinned", "now", n=1, lineterm="")
    )
    if lines:
        more = [f"… and {len(lines) - SHOWN} more lines."] if len(lines) > SHOWN else []
        again = f"If {path.name} is meant to change, run `python -m tests.presets` and say why in the commit."
        pytest.fail("\n".join([*lines[:SHOWN], *more, again]), pytrace=False)


def write(value: Any) -> str:
    """Return a value as JSON whose lines hold what fits."""
    return _write(value, 0) + "\n"


def _write(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(line) + depth <= WIDTH:
        return line
    edge, inner = " " * depth, " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_write(each, depth + 1)}" for key, each in value.items()]
    else:
        parts = [_write(each, depth + 1) for each in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n{inner}" + f",\n{inner}".join(parts) + f"\n{edge}{closed}"
