"""Which runs end a command with 3, by the rule of their format or the chosen one."""

from __future__ import annotations

import pytest

from runs.exchange.exports.exports import has_regressed


@pytest.mark.parametrize(
    ("format", "chosen", "verdict", "lost", "regressed"),
    [
        ("llm_tool_test", None, "regressed", [], True),
        ("llm_tool_test", None, "too_little", ["a"], False),
        ("agentv", None, "no_evidence", ["a"], False),
        ("agentv", "pass-fail", "no_evidence", ["a"], True),
        ("tool_forge", None, "no_evidence", ["a"], True),
        ("tool_forge", None, "regressed", [], False),
        ("tool_forge", "verdict", "regressed", [], True),
        ("tool_forge", "verdict", "", ["a"], False),
    ],
)
def test_a_rule_decides_what_is_a_regression(format, chosen, verdict, lost, regressed):
    run = {"format": format, "verdict": verdict, "verdict_reason": None, "regressions": lost}
    assert has_regressed(run, chosen) is regressed


@pytest.mark.parametrize("format", ["llm_tool_test", "tool_forge"])
def test_a_run_without_a_verdict_did_not_regress(format):
    run = {"format": format, "verdict": None, "verdict_reason": "errors", "regressions": ["a"]}
    assert not has_regressed(run)
