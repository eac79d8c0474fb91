"""Untrusted input is bounded at few places: the wall in front of files, and what the worker reads of an agent."""

from __future__ import annotations

import ast

from tests.limits import MOST, find_limits, numbers_in


def test_limits_are_few():
    found = find_limits()
    assert len(found) <= MOST, found
    assert "runs/sandbox/reader_program.py:MEMORY_BYTES" in found


def test_constants_attributes_and_defaults_are_counted():
    source = "MOST = 1 << 20\nA, B = 1, 'x'\nclass C:\n    n: int = 3\ndef f(a, b=2, *, c=4, d=True): pass\nE = len('x')\n"
    assert set(numbers_in(ast.parse(source))) == {"MOST", "A", "n", "b", "c"}
