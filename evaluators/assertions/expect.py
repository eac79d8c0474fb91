"""What an eval case expects (`expect`), in the words of its file's keys."""

from __future__ import annotations

from typing import Literal

from evaluators.values import Value

ParamAssertion = Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]

WITHOUT_VALUE: frozenset[str] = frozenset(("exists", "notExists"))
"""Assertions on a parameter that compare it with nothing."""

NO_TOOLS = "__none__"
"""Stands for the set of no tools in `toolsAcceptable`."""


class ToolParam(Value):
    """One assertion on one parameter of the first call of a tool."""

    tool: str
    param: str
    assertion: ParamAssertion
    value: str | tuple[str, ...] = ""
    """Several only for `oneOf`; texts in which tokens are still to be replaced."""


class Expect(Value):
    """Every assertion of the contract in its order. None is a key that is not there, or switched off.

    An empty list is an assertion of its own: `tools_called=()` allows no call.
    """

    tools_called: tuple[str, ...] | None = None
    tools_acceptable: tuple[tuple[str, ...], ...] | None = None
    tools_not_called: tuple[str, ...] | None = None
    tools_included: tuple[str, ...] | None = None
    """Tools that must be among the called ones: `tool_called` of the third case format, no contract key."""
    tool_params: tuple[ToolParam, ...] | None = None
    no_tool_errors: bool = False
    response_non_empty: bool = False
    response_contains: tuple[str, ...] | None = None
    response_contains_any: tuple[tuple[str, ...], ...] | None = None
    response_not_contains: tuple[str, ...] | None = None
    response_matches: tuple[str, ...] | None = None
    max_latency_ms: float | None = None
    max_tokens: float | None = None
    stubs: tuple[str, ...] | None = None
    """Tools that are stubbed; None where the case is not in stub mode, which an empty list is."""

    @property
    def asserted(self) -> int:
        """How many assertions a case makes; its stubs are none."""
        return sum(value is not None and value is not False for name, value in self if name != "stubs")
