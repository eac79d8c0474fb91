"""Holds docs/providers.md complete: every field of a kind stands in the section whose heading names the kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runs.providers import OPTIONS
from runs.providers.options import Options

TEXT = (Path(__file__).parents[3] / "docs/providers.md").read_text(encoding="utf-8")


def section(kind: str) -> str:
    found = re.search(rf"^## .*`{re.escape(kind)}`.*\n(?s:.*?)(?=^## |\Z)", TEXT, re.MULTILINE)
    assert found, f"docs/providers.md has no section with `{kind}` in its heading."
    return found[0]


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_kind_is_documented(kind):
    assert section(kind)


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        (kind, spellings)
        for kind in OPTIONS
        for name, spellings in OPTIONS[kind].spellings().items()
        if name not in Options.model_fields
    ],
    ids=str,
)
def test_a_field_is_documented(kind, spellings):
    assert any(f"`{name}`" in section(kind) for name in spellings)
