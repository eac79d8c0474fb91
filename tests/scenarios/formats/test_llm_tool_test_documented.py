"""docs/formats/llm-tool-test.md has a row for every gate, with its keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.grading.gates import GATES, BaseGate

TEXT = (Path(__file__).parents[3] / "docs/formats/llm-tool-test.md").read_text(encoding="utf-8")
SHARED = {*BaseGate.model_fields, "network"}
"""Keys that the paragraph above the table explains for all gates."""


@pytest.mark.parametrize("kind", GATES)
def test_every_gate_is_documented(kind):
    rows = [line for line in TEXT.splitlines() if line.startswith(f"| `{kind}` |")]
    assert len(rows) == 1
    own = set(GATES[kind].model_fields) - SHARED - {"type"}
    assert {key for key in own if f"`{key}`" not in rows[0]} == set()
