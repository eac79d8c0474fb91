"""The assertions of an eval case (`expect`), named after the keys of its file."""

from __future__ import annotations

from typing import Literal

from evaluators.model import Value

ParamAssertion = Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]

WITHOUT_VALUE: frozenset[str] = frozenset(("exists", "notExists"))
"""Assertions on a parameter that need no value."""

NO_TOOLS = "__none__"
"""Means "no tools" in `toolsAcceptable`."""


class ToolParam(Value):
    """One assertion on one parameter of the first call of a tool."""

    tool: str
    param: str
    assertion: ParamAssertion
    value: str | tuple[str, ...] = ""
    """Several values only for `oneOf`; tokens are not replaced yet."""


class Expect(Value):
    """Every assertion of the contract in its order. None means the key is missing or off.

    An empty list asserts too: `tools_called=()` allows no call.
    """

    tools_called: tuple[str, ...] | None = None
    tools_acceptable: tuple[tuple[str, ...], ...] | None = None
    tools_not_called: tuple[str, ...] | None = None
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
    """Stubbed tools; None outside stub mode, an empty list in stub mode without stubs."""

    @property
    def names_tools(self) -> bool:
        """Whether a case asserts which tools are called, or how."""
        named = (self.tools_called, self.tools_acceptable, self.tools_not_called, self.tool_params)
        return any(each is not None for each in named)

    @property
    def asserted(self) -> int:
        """The number of assertions; stubs do not count."""
        return sum(value is not None and value is not False for name, value in self if name != "stubs")
