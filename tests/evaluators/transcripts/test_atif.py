"""Trajectories in ATIF: versions, shell tools, observations, and steps that are copied."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.model import Transcript
from evaluators.transcripts import parse


def atif(version: str, **step: Any) -> Transcript:
    value = {"schema_version": version, "steps": [{"step_id": 1, "source": "agent", **step}]}
    return parse("atif", json.dumps(value).encode())


@pytest.mark.parametrize("minor", range(9))
def test_every_version_of_atif_that_was_seen_is_read_without_a_note(minor: int) -> None:
    assert atif(f"ATIF-v1.{minor}", message="Done.").problems == ()


SHELLS = {
    "exec_command": ({"cmd": "mt a"}, "mt a"),
    "shell_command": ({"command": "mt a"}, "mt a"),
    "execute_bash": ({"command": "mt a"}, "mt a"),
    "run_terminal_cmd": ({"command": "mt a"}, "mt a"),
    "shell": ({"command": ["bash", "-lc", "mt a | head"]}, "mt a | head"),
    "local_shell": ({"command": ["mt", "a b"]}, "mt 'a b'"),
    "read_file": ({"command": "mt a"}, None),
}
"""Tools of agents whose trajectories are public, with their arguments and the command in them."""


@pytest.mark.parametrize("name", SHELLS)
def test_shell_tools_are_known_by_the_names_that_agents_give_them(name: str) -> None:
    arguments, command = SHELLS[name]
    found = atif(
        "ATIF-v1.4", tool_calls=[{"tool_call_id": "1", "function_name": name, "arguments": arguments}]
    )
    assert [event.command for event in found.events] == [command]


def test_what_was_observed_may_stand_in_the_next_step() -> None:
    call = {"tool_call_id": "1", "function_name": "bash", "arguments": {"command": "mt a"}}
    result = {"source_call_id": "1", "content": "done"}
    steps = [
        {"source": "agent", "tool_calls": [call]},
        {"source": "system", "observation": {"results": [result]}},
    ]
    found = parse("atif", json.dumps({"schema_version": "ATIF-v1.4", "steps": steps}).encode())
    assert [(event.type, event.id, event.output) for event in found.events[1:]] == [
        ("tool_result", "1", "done")
    ]


def test_a_copied_step_of_atif_costs_nothing() -> None:
    steps = [{"source": "agent", "message": "a", "metrics": {"cost_usd": 1.0}}]
    steps.append({**steps[0], "metrics": {"cost_usd": 5.0}, "is_copied_context": True})
    found = parse("atif", json.dumps({"schema_version": "ATIF-v1.7", "steps": steps}).encode())
    assert found.cost_usd == 1.0


def test_a_newer_atif_is_read_with_a_note() -> None:
    found = atif("ATIF-v2.0", message=[{"type": "text", "text": "Done."}])
    assert found.answer == "Done." and "ATIF-v2.0 is newer" in found.problems[0]


def test_a_copied_step_of_atif_counts_in_its_own_session() -> None:
    calls_made = [{"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "./taskmgr list"}}]
    metrics = {"prompt_tokens": 1, "completion_tokens": 1}
    found = atif("ATIF-v1.7", is_copied_context=True, tool_calls=calls_made, metrics=metrics)
    assert (found.events, found.usage) == ((), None)


def test_a_call_without_an_id_has_what_was_observed() -> None:
    call = {"function_name": "bash", "arguments": {"command": "mt a"}}
    observed = {"results": [{"content": "Exit code: 3"}]}
    step = {"source": "agent", "tool_calls": [call], "observation": observed}
    found = parse("atif", json.dumps({"schema_version": "ATIF-v1.4", "steps": [step, step]}).encode())
    first, result, second, other = found.events
    assert (first.id, second.id, result.exit_code) == (result.id, other.id, 3)
    assert first.id != second.id
