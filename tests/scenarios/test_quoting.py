"""The lines beneath a problem, and the spot in them."""

from __future__ import annotations

import pytest

from scenarios.commands import quote_lines
from scenarios.formats.parsed import Problem

FILE = b"task: {prompt: 5}\ngates:\n  - {type: file_exist, path: x}\n"


@pytest.mark.parametrize(
    ("line", "where", "what", "parts"),
    [
        pytest.param(3, "gates[0].type", "Unknown gate 'file_exist'.", ("  - {type: ", "file_exist", ", path: x}"), id="quoted"),
        pytest.param(1, "task.prompt", "This must be text.", ("task: {", "prompt", ": 5}"), id="last key"),
        pytest.param(2, "other[0]", "It is missing.", ("gates:", "", ""), id="not known"),
    ],
)  # fmt: skip
def test_the_spot_is_the_quoted_text_else_the_last_key(line, where, what, parts):
    (found,) = quote_lines([Problem("a.yaml", line, where, what)], {"a.yaml": FILE})
    (here,) = [each for each in found.lines if each.here]
    assert here.parts == parts
    assert [each.spot for each in found.lines if not each.here] == [""] * (len(found.lines) - 1)
