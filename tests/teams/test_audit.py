"""Every recorded action has a text."""

from __future__ import annotations

import ast
from pathlib import Path

from evalhub.teams.audit import ACTIONS, action_text

ROOT = Path(__file__).resolve().parents[2]


def recorded_actions(tree: ast.AST) -> set[str]:
    """Return the actions that a module passes to `audit.append_event`, both of a conditional expression."""
    actions = [
        call.args[2]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "audit.append_event"
    ]
    options = [(each.body, each.orelse) if isinstance(each, ast.IfExp) else (each,) for each in actions]
    return {each.value for pair in options for each in pair if isinstance(each, ast.Constant)}


def test_every_recorded_action_has_a_text_and_no_other():
    files = (path for part in ("evalhub", "runs", "scenarios") for path in (ROOT / part).rglob("*.py"))
    texts = [text for path in files if "append_event" in (text := path.read_text())]
    assert set().union(*(recorded_actions(ast.parse(text)) for text in texts)) == ACTIONS.keys()


def test_an_unknown_action_is_shown_as_stored():
    assert action_text("suite.upload") == "uploaded the suite"
    assert action_text("of.later") == "of.later"
