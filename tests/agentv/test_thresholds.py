"""From which aggregate a trial passes: the suite's own threshold, or that of a request (Score Aggregation)."""

from __future__ import annotations

import json

import pytest

from runs.compare.differences import fingerprint_parts
from tests.agentv.eval_folder import cases, run_folder, the_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

HALF = [{"type": "tool_trajectory", "mode": "any_order", "minimums": {"a": 1, "b": 1}}]
MOCK = {
    "name": "agent",
    "provider": "mock",
    "trace": [{"type": "tool_call", "name": "a", "timestamp": "2026-01-01T00:00:00Z"}],
}


@pytest.mark.parametrize(
    ("own", "words", "code", "shown"),
    [
        (None, (), 1, None),
        (0.5, (), 0, "0.5"),
        (0.6, (), 1, "0.6"),
        (None, ("--threshold", "0.5"), 0, "0.5"),
        (0.5, ("--threshold", "0.75"), 1, "0.75"),
        (0.5, ("--threshold", "1"), 1, None),
    ],
    ids=[
        "neither",
        "the suite's",
        "the suite's is missed",
        "a request's",
        "a request's goes first",
        "1 again",
    ],
)
@pytest.mark.spec("agentv", "Mean of scores, and its status")
def test_a_trial_passes_at_its_threshold_shown_by_the_run(tmp_path, own, words, code, shown):
    document = json.loads(cases("half", evaluators=HALF))
    if own is not None:
        document["execution"] = {"threshold": own}
    assert run_folder(tmp_path, json.dumps(document), MOCK, words=words).code == code
    run = the_run()
    assert run.fingerprint.get("threshold") == shown
    assert {part.label: part.text for part in fingerprint_parts(run)}.get("Judge threshold") == shown
    scores = run.trial_set.get().scores
    (aggregate,) = (score for score in scores if (score["layer"], score["name"]) == ("evaluators", "score"))
    assert (aggregate["value"], aggregate["passed"]) == (0.5, code == 0)


@pytest.mark.parametrize("value", ["1.5", "-0.1"])
def test_a_threshold_outside_0_and_1_is_refused(tmp_path, value):
    called = run_folder(tmp_path, cases("half", evaluators=HALF), MOCK, words=("--threshold", value))
    assert called.code == 2
    assert f"--threshold is {value}" in called.document["detail"]
