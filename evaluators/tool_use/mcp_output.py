"""Whether the result of an MCP server's tool fits the `outputSchema` that the server gives."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.model import Json
from evaluators.tool_use.mcp_arguments import ArgumentProblem, ArgumentProblemKind, argument_problems

_SHOWN = 3


def output_problem(schema: Mapping[str, Json], result: Json) -> str:
    """Return how a result breaks the schema (MCP, Output Schema), in a sentence; empty if it fits.

    A result that was too long to be recorded is not checked.
    """
    if not isinstance(result, Mapping) or result.get("truncated") or not result:
        return ""
    if "structuredContent" not in result:
        return "The server broke its outputSchema: the result has no structuredContent."
    found = argument_problems(schema, result["structuredContent"])
    if not found:
        return ""
    return f"The server broke its outputSchema: {', '.join(map(_words, found[:_SHOWN]))}."


def _words(problem: ArgumentProblem) -> str:
    name = f"`{problem.name}`" if problem.name else "structuredContent"
    if problem.kind == ArgumentProblemKind.MISSING:
        return f"{name} is missing"
    if problem.kind == ArgumentProblemKind.UNKNOWN:
        return f"{name} is not allowed"
    return f"{name} is not {problem.expected}"
