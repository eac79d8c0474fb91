"""An answer that is too long to be stored says so."""

from __future__ import annotations

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.model import AgentResult
from runs.engine.recording import TrialResult, columns_of_result


def test_a_cut_answer_says_so() -> None:
    stored = columns_of_result(
        TrialResult(outcome="pass", execution=AgentResult(answer="x" * (LONGEST_TEXT + 1_500)))
    )["answer"]
    assert stored == "x" * LONGEST_TEXT + "\n[... 1,500 characters left out ...]"
    whole = "x" * LONGEST_TEXT
    assert (
        columns_of_result(TrialResult(outcome="pass", execution=AgentResult(answer=whole)))["answer"] == whole
    )
