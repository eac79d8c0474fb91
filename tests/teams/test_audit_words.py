"""What people did is said in words, whatever it was."""

from __future__ import annotations

import ast
from pathlib import Path

from evalhub.teams.models import DONE, sentence

ROOT = Path(__file__).resolve().parents[2]


def noted(tree: ast.AST) -> set[str]:
    """Return the actions of a module's calls of `note`; one of two words stands there as a choice."""
    actions = [
        call.args[2]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "note"
    ]
    chosen = [(each.body, each.orelse) if isinstance(each, ast.IfExp) else (each,) for each in actions]
    return {each.value for pair in chosen for each in pair if isinstance(each, ast.Constant)}


def test_every_action_that_is_noted_has_its_words_and_no_other():
    files = [path for part in ("evalhub", "runs", "scenarios") for path in (ROOT / part).rglob("*.py")]
    assert set().union(*(noted(ast.parse(path.read_text())) for path in files)) == DONE.keys()


def test_what_was_done_stands_before_what_it_was_done_to():
    assert sentence("suite.upload", "stock") == "uploaded the suite stock"
    assert sentence("sign-in.link", "") == "signed in with a link"
    assert sentence("of.later", "it") == "of.later it"
