"""Sessions that evalhub ended: what was cut is unknown, by whatever means it was ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluators.tool_use.calls import pair_calls
from runs.engine.assess import parse_recording
from runs.engine.grading import grade
from runs.targets.providers.base import Recording

STREAM = (Path(__file__).parents[2] / "files/streams/claude_code_cut.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("ended", "last"),
    [({"timed_out": True}, None), ({"cancelled": True}, None), ({"exit_code": 143}, None), ({"exit_code": 1}, 137)],
)  # fmt: skip
def test_the_last_command_of_a_session_that_evalhub_ended_is_unknown(
    ended: dict[str, Any], last: int | None
) -> None:
    found = parse_recording(Recording(raw=STREAM, parser="claude_code", **ended))
    assert [call.exit_code for call in pair_calls(found.events)] == [1, last]


@pytest.mark.parametrize(("timed_out", "last"), [(True, None), (False, 137)])
def test_graded_evidence_that_timed_out_is_read_alike(timed_out: bool, last: int | None) -> None:
    given = grade.GivenEvidence.model_validate(
        {"stream": {"parser": "claude_code", "text": STREAM.decode()}, "timed_out": timed_out}
    )
    found = grade.parse_evidence(given, grade.evidence_as_recording(given))
    assert [call.exit_code for call in pair_calls(found.events)] == [1, last]
