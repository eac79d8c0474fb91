"""Holds docs/providers.md complete: every field of a kind stands in the kind's own section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runs.providers import OPTIONS
from runs.providers.options import Options

TEXT = (Path(__file__).parents[3] / "docs/providers.md").read_text(encoding="utf-8")
SECTIONS = {
    **{kind: f"`{kind}`" for kind in ("cli", "mock", "http", "codex", "claude_code", "vscode")},
    "replay": "`mock`, `replay`",
}


def section(kind: str) -> str:
    heading = re.escape(f"## {SECTIONS[kind]}")
    found = re.search(rf"^{heading}.*?(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, kind
    return found[0]


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        (kind, spellings)
        for kind in SECTIONS
        for name, spellings in OPTIONS[kind].spellings().items()
        if name not in Options.model_fields
    ],
    ids=str,
)
def test_a_field_is_documented(kind, spellings):
    assert any(f"`{name}`" in section(kind) for name in spellings)
