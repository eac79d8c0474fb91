"""Gates that look at files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evaluators.grading.gates.gate_samples import check

pytestmark = pytest.mark.spec("llm-tool-test", "Gates on files")

FILES = {"notes.md": "status: complete"}


@pytest.mark.parametrize(
    ("gate", "passed", "message"),
    [
        ({"type": "file_exists", "path": "notes.md"}, True, "notes.md exists."),
        ({"type": "file_exists", "path": "no.md"}, False, "no.md does not exist."),
        ({"type": "file_exists", "path": "../x"}, False, "../x leads out of the workspace."),
        ({"type": "file_contains", "path": "notes.md", "substring": "comp"}, True, "notes.md contains 'comp'."),
        ({"type": "file_contains", "path": "notes.md", "substring": "X"}, False, "notes.md does not contain 'X'."),
        ({"type": "file_contains", "path": "no.md", "substring": "X"}, False, "no.md does not exist."),
        ({"type": "file_matches", "path": "notes.md", "pattern": r"s\w+:"}, True, r"notes.md matches 's\w+:'."),
        ({"type": "file_matches", "path": "notes.md", "pattern": "^c"}, False, "notes.md does not match '^c'."),
        ({"type": "file_matches", "path": "/etc/x", "pattern": "^c"}, False, "/etc/x leads out of the workspace."),
    ],
)  # fmt: skip
def test_gates_on_files(gate: dict[str, Any], passed: bool, message: str) -> None:
    score = check(gate, files=FILES)
    assert (score.passed, score.message, score.detail["path"]) == (passed, message, gate["path"])
