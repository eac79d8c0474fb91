"""Parallel Test Execution of the AgentV specification, by the times at which the trials ran."""

from __future__ import annotations

import json

import pytest

from runs.models import Trial
from tests.agentv.eval_folder import cases, records, run_folder, the_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

KEYS = [f"case-{n}" for n in range(6)]
SLOW = {"name": "slow", "provider": "mock", "response": "done", "delay_ms": 300}


def most_at_once() -> int:
    """Return how many trials ran at the same time at most."""
    spans = list(Trial.objects.values_list("started", "finished"))
    return max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)


@pytest.mark.parametrize(
    ("workers", "words", "expected"),
    [
        (None, (), 1),
        (3, (), 3),
        (None, ("--concurrency", "3"), 3),
        (3, ("--concurrency", "2"), 2),
        (2, ("--concurrency", "6"), 2),
    ],
    ids=["the default", "workers", "a request", "a request below workers", "workers cap a request"],
)
@pytest.mark.spec("agentv", "Cases at once")
def test_configurable_concurrency(tmp_path, workers, words, expected):
    # A script per answer would blur the times.
    eval_file = cases(*KEYS, evaluators=[{"type": "expected_messages"}])
    run_folder(tmp_path, eval_file, {**SLOW, **({"workers": workers} if workers else {})}, words=words)
    assert Trial.objects.count() == 6
    assert most_at_once() == expected


@pytest.mark.spec("agentv", "A failing worker leaves the others")
def test_error_isolation_in_parallel_mode(tmp_path):
    template = (
        "case {EVAL_ID} in case-1) echo broken >&2; exit 7;; case-2) sleep 0.5;; esac; echo done by {EVAL_ID}"
    )
    target = {"name": "command", "provider": "cli", "command_template": template, "workers": 4}
    assert run_folder(tmp_path, cases(*KEYS), target).code == 1
    run = the_run()
    assert (run.state, run.passed, run.errors, run.open) == ("finished", 5, 1, 0)
    found = records()
    assert [record["eval_id"] for record in found] == KEYS
    assert "exit code 7: broken" in found[1]["error"]
    assert [record["candidate_answer"].strip() for record in found if "error" not in record] == [
        f"done by {key}" for key in KEYS if key != "case-1"
    ]


def test_a_broken_evaluator_fails_only_its_own_case(tmp_path):
    broken = json.loads(cases("broken", evaluators=[{"type": "code_judge", "script": "echo oh >&2; exit 3"}]))
    good = json.loads(cases(*KEYS[:2]))
    eval_file = json.dumps({"evalcases": [*broken["evalcases"], *good["evalcases"]]})
    run_folder(tmp_path, eval_file, {**SLOW, "workers": 3})
    assert [trial.outcome for trial in Trial.objects.order_by("position")] == ["error", "pass", "pass"]
