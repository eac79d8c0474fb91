"""Gates on the calls of an MCP server: an expected tool, a forbidden one, or none at all."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from evaluators.grading.evidence import Evidence
from evaluators.grading.gates.base_gate import BaseGate
from evaluators.model import Command, Json, Score
from evaluators.tool_use.mcp_calls import arguments_of

_SHOWN = 5
NO_SERVER = "The scenario names no MCP server. Add target.mcp, or use another gate."


class _McpGate(BaseGate):
    """A gate that counts calls; help isn't a call."""

    needs_workspace: ClassVar[bool] = False

    def check(self, evidence: Evidence) -> Score:
        if evidence.tool is None or evidence.tool.mcp is None:
            return self.score(None, NO_SERVER, error=NO_SERVER)
        if problem := evidence.interaction.problem:
            return self.score(None, problem, error=problem)
        calls = [each for each in evidence.interaction.commands if not each.help]
        return self.judge(calls, evidence.tool.mcp.name)

    @abstractmethod
    def judge(self, calls: list[Command], server: str = "") -> Score:
        """Return the score for the agent's calls of a server."""


class McpCalled(_McpGate):
    """The agent called the tool, with these arguments among others, and the call succeeded."""

    type: Literal["mcp_called"] = "mcp_called"
    tool: str = Field(min_length=1)
    arguments: dict[str, Json] = Field(default_factory=dict)
    times: int | None = Field(default=None, ge=1)
    """Exact number of calls; None means at least one."""

    def judge(self, calls: list[Command], server: str = "") -> Score:
        called = [call for call in calls if _is_named(call, self.tool, server)]
        # A call whose end is unknown isn't a success.
        fitting = [
            call for call in called if call.exit_code == 0 and _has(arguments_of(call.line), self.arguments)
        ]
        passed = bool(fitting) if self.times is None else len(fitting) == self.times
        wanted = "at least 1" if self.times is None else str(self.times)
        how = " with these arguments" if self.arguments else ""
        message = (
            f"Successful calls of `{self.tool}`{how}: {len(fitting)} of {len(called)}; expected {wanted}."
        )
        return self.score(
            passed, message, expected=wanted, actual=len(fitting), calls=_lines(called or calls)
        )


class McpNotCalled(_McpGate):
    """The agent didn't call the tool, whether or not the call would have worked; without a tool, none of the server's."""

    type: Literal["mcp_not_called"] = "mcp_not_called"
    tool: str | None = Field(default=None, min_length=1)

    def judge(self, calls: list[Command], server: str = "") -> Score:
        called = [each for each in calls if self.tool is None or _is_named(each, self.tool, server)]
        what = f"`{self.tool}`" if self.tool else "the server's tools"
        message = f"Calls of {what}: {len(called)}; expected none."
        return self.score(not called, message, expected=0, actual=len(called), calls=_lines(called))


def _is_named(call: Command, tool: str, server: str) -> bool:
    """Return whether a call is of a tool, given as `tool` or `server/tool`; runs with several servers have the latter."""
    name = call.subcommand or ""
    return tool in (name, f"{server}/{name}") or name == f"{server}/{tool}"


def _lines(calls: list[Command]) -> list[Json]:
    return [each.line for each in calls[:_SHOWN]]


def _has(actual: Json, wanted: Json) -> bool:
    """Return whether a value contains what is wanted: mappings by key, other values by equality."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            key in actual and _has(actual[key], wanted[key]) for key in wanted
        )
    return bool(actual == wanted)
