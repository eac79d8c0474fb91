"""The variables that evalhub sets for a scenario's commands, and those that a tool names.

`target.env` names them as `${VAR}`, headers of an MCP server as `${{ VAR }}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_IN_HEADER = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
OF_TRIALS = (
    "LLM_TOOL_TEST_FIXTURE_DIR",
    "LLM_TOOL_TEST_RESULTS_DIR",
    "LLM_TOOL_TEST_SCENARIO",
    "LLM_TOOL_TEST_AGENT",
    "LLM_TOOL_TEST_MODEL",
    "LLM_TOOL_TEST_TRANSCRIPT",
    "LLM_TOOL_TEST_EVENTS",
)
_OWN = frozenset((*OF_TRIALS, "PATH", "HOME", "TMPDIR", "LANG"))
"""What evalhub sets itself, whatever the worker's variables of these names are."""


def named_variables(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each entry of `target.env` with each variable that it names and evalhub doesn't set, in their order."""
    for name, value in env.items():
        yield from ((name, variable) for variable in _VARIABLE.findall(value) if variable not in _OWN)


def resolve_env(env: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return `target.env` with its variables replaced; a name that is not among them stays as written."""

    def replaced(match: re.Match[str]) -> str:
        return variables.get(match[1], match[0])

    return {name: _VARIABLE.sub(replaced, value) for name, value in env.items()}


def named_in_headers(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each header with each variable that it names, in their order."""
    for name, value in headers.items():
        yield from ((name, variable) for variable in _IN_HEADER.findall(value))


def resolve_headers(headers: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their variables replaced. Raises `KeyError` with the first that is missing."""
    return {name: _IN_HEADER.sub(lambda match: variables[match[1]], value) for name, value in headers.items()}
