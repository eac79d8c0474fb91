"""Holds that every scenario of the AgentV evaluation specification has a test named after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TRAJECTORY = "evaluators/assertions/test_agentv_spec_trajectory.py"
AGGREGATION = "evaluators/scores/test_agentv_spec_aggregation.py"
JUDGES = "evaluators/judges/test_agentv_spec_judges.py"
GUIDELINES = "scenarios/formats/test_agentv_spec_guidelines.py"
TRACES = "agentv/test_traces_in_runs.py"
PROVIDERS = "agentv/test_provider_integration.py"
PARALLEL = "agentv/test_parallel_execution.py"
TEMPLATES = "agentv/test_cli_templates.py"
WALK = "agentv/test_whole_folder.py"
FAILURES = "runs/providers/test_model_failures.py"

REQUIREMENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "Test Case Execution": {
        "Provider returns a trace": (TRAJECTORY, TRACES),
        "Provider does not support traces": (TRAJECTORY, TRACES),
    },
    "LLM Judge Evaluator JSON Contract": {
        "Enforce JSON prompt contract": (JUDGES,),
        "Parse JSON evaluator response": (JUDGES,),
        "Record evaluator request metadata": (JUDGES, WALK),
    },
    "Provider Integration": {
        "Azure OpenAI provider": (PROVIDERS,),
        "Anthropic provider": (PROVIDERS,),
        "Google Gemini provider": (PROVIDERS,),
        "VS Code provider": (PROVIDERS,),
        "Codex CLI provider": (PROVIDERS,),
        "Mock provider for dry-run": (PROVIDERS,),
    },
    "Parallel Test Execution": {
        "Configurable concurrency": (PARALLEL,),
        "Error isolation in parallel mode": (PARALLEL,),
    },
    "Provider-level batching flag": {
        "Enabled for batching-capable provider": ("runs/trials/test_batching.py",),
        "Fallback when provider cannot batch": ("runs/trials/test_batching_fallback.py",),
    },
    "Custom Evaluators": {
        "Deterministic trace evaluator reads trace": (JUDGES,),
        "LLM judge may consume trace (opt-in)": (JUDGES,),
    },
    "CLI Template Execution": {
        "Render and execute template": (TEMPLATES,),
        "Optional health check": (TEMPLATES,),
    },
    "CLI Template Configuration": {
        "Required template fields": (TEMPLATES,),
        "Placeholder substitution rules": (TEMPLATES,),
        "Health check schema": (TEMPLATES,),
    },
    "Provider Retry Configuration": {
        "Configure retry in targets.yaml": ("runs/providers/test_retry.py", FAILURES),
        "Default exponential backoff": ("runs/providers/test_retry.py", FAILURES),
        "Non-retryable errors": ("runs/providers/test_retry.py", FAILURES),
    },
    "Guideline Pattern Configuration": {
        "Load custom guideline patterns": (GUIDELINES,),
        "Use defaults when config absent": (GUIDELINES,),
        "Match files with glob patterns": (GUIDELINES,),
    },
    "Trace Data Model": {
        "TraceEvent structure": (TRAJECTORY,),
        "TraceSummary computation": (TRAJECTORY,),
    },
    "Tool Trajectory Evaluator": {
        "Minimum calls met - PASS": (TRAJECTORY,),
        "Minimum calls not met - FAIL": (TRAJECTORY,),
        "Multiple minimums - partial pass": (TRAJECTORY,),
        "In-order sequence - PASS": (TRAJECTORY,),
        "In-order sequence - FAIL (wrong order)": (TRAJECTORY,),
        "Exact sequence - PASS": (TRAJECTORY,),
        "Exact sequence - FAIL (extra tools)": (TRAJECTORY,),
        "No trace available": (TRAJECTORY,),
    },
    "Expected Messages Tool Call Validation": {
        "Tool calls match - PASS": (TRAJECTORY,),
        "Tool name mismatch - FAIL": (TRAJECTORY,),
        "Input mismatch - FAIL": (TRAJECTORY,),
        "Input not specified - match tool name only": (TRAJECTORY,),
        "Multiple tool calls - partial match": (TRAJECTORY,),
        "Fewer actual calls than expected - FAIL": (TRAJECTORY,),
        "No trace but expected_messages has tool_calls - FAIL": (TRAJECTORY,),
    },
    "Score Aggregation": {"Multiple evaluators aggregation": (AGGREGATION,)},
}
"""The specification's requirements, their scenarios, and the files in which these are tested."""

SCENARIOS = [
    (title, file) for titles in REQUIREMENTS.values() for title, files in titles.items() for file in files
]


def named_after(title: str) -> str:
    """Return the name of a scenario's test: its words without verdicts, brackets and signs."""
    plain = re.sub(r" - (PASS|FAIL)", "", title).replace("(opt-in)", "")
    words = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", plain)
    return "test_" + "_".join(re.findall(r"[a-z0-9]+", words.lower()))


@pytest.mark.parametrize(("title", "file"), SCENARIOS, ids=lambda value: value)
def test_a_scenario_has_a_test_named_after_it(title, file):
    assert f"def {named_after(title)}(" in (TESTS / file).read_text()


def test_no_scenario_is_left_out():
    assert (len(REQUIREMENTS), sum(map(len, REQUIREMENTS.values()))) == (14, 46)
