"""Why a trial did not pass."""

from __future__ import annotations

from runs.results.failure_reasons import reasons_of

MISSING = {"layer": "gates", "name": "file_exists", "passed": False, "message": "order.csv does not exist."}


def test_a_sentence_is_shown_once_for_several_gates():
    scores = [
        MISSING,
        {**MISSING, "name": "file_contains"},
        {"layer": "judge", "name": "judge", "passed": False},
        {"layer": "gates", "name": "command_succeeds", "passed": True, "message": "It did."},
        {"layer": "interaction", "name": "error_rate", "value": 0.5},
    ]
    assert reasons_of(scores) == ["order.csv does not exist.", "judge failed."]
