"""Gate kinds of earlier programs, refused with their replacement_gate."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from evaluators.grading.gates.base_gate import replacement_gate
from tests.evaluators.grading.gates.gate_samples import gate_of

pytestmark = pytest.mark.spec("llm-tool-test", "Replacements of the former gates")

FORMER: dict[str, dict[str, Any]] = {
    "min_notes": {"count": 3},
    "min_links": {"count": 1},
    "search_hit": {"query": "it's here"},
    "note_exists": {"id": "n 1"},
    "link_exists": {"from": "a", "to": "b"},
    "tag_exists": {"tag": "x"},
    "content_contains": {"id": "a", "substring": "b: c"},
    "doctor_passes": {},
}


@pytest.mark.parametrize("kind", FORMER)
def test_a_former_gate_has_a_replacement_ready_to_paste(kind: str) -> None:
    text = replacement_gate(kind, FORMER[kind], binary="tasks")
    assert text is not None
    (gate,) = yaml.safe_load(text)
    assert gate_of.validate_python(gate).command.startswith("tasks ")


def test_replacements_keep_the_parameters() -> None:
    assert "len >= 3" in str(replacement_gate("min_notes", {"count": 3}))
    assert "my-tool show 'n 1'" in str(replacement_gate("note_exists", {"id": "n 1"}))


def test_other_kinds_have_no_replacement() -> None:
    assert replacement_gate("file_exists", {}) is None
