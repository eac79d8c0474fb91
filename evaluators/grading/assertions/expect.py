"""The assertions of an eval case (`expect`), named after the keys of its file, which are in camel case there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from evaluators.js_text import string_of
from evaluators.model import AS_TUPLE, Amount, Json, Text, Value

Names = Annotated[tuple[Text, ...], AS_TUPLE]
Texts = Annotated[tuple[str, ...], AS_TUPLE]

WITHOUT_VALUE: frozenset[str] = frozenset(("exists", "notExists"))
"""Assertions on a parameter that need no value."""

NO_TOOLS = "__none__"
"""Means "no tools" in `toolsAcceptable`."""


class ToolParam(Value):
    """One assertion on one parameter of the first call of a tool."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    tool: Text
    param: Text = Field(alias="paramName")
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: str | tuple[str, ...] = ""
    """Several values only for `oneOf`; tokens are not replaced yet."""

    @field_validator("value", mode="before", json_schema_input_type=Json)
    @classmethod
    def _as_texts(cls, value: Json, info: ValidationInfo) -> str | tuple[str, ...]:
        assertion = info.data.get("assertion")
        if assertion == "oneOf" and isinstance(value, list | tuple):
            return tuple(map(string_of, value))
        return "" if assertion in WITHOUT_VALUE else string_of(value)


class Expect(Value):
    """Every assertion of the contract in its order. None means the key is missing or off.

    An empty list asserts too: `tools_called=()` allows no call.
    """

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)

    tools_called: Names | None = None
    """Exactly these calls, in this order, as often as listed; an empty list means no call."""
    tools_acceptable: Annotated[tuple[Names, ...], AS_TUPLE] | None = None
    """Sets of tools; the called tools must equal one of them, in any order and number."""
    tools_not_called: Names | None = None
    """Tools that must not be called."""
    tool_params: Annotated[tuple[ToolParam, ...], AS_TUPLE] | None = None
    """Assertions on arguments of calls."""
    no_tool_errors: bool = False
    """Whether no call may fail."""
    response_non_empty: bool = False
    """Whether the answer must be more than white space."""
    response_contains: Texts | None = None
    """Texts that the answer contains, all of them."""
    response_contains_any: Annotated[tuple[Texts, ...], AS_TUPLE] | None = None
    """Groups of texts; of each the answer contains one."""
    response_not_contains: Texts | None = None
    """Texts that the answer must not contain."""
    response_matches: Texts | None = None
    """Regular expressions that match the answer, all of them."""
    max_latency_ms: Amount | None = None
    """The longest time from the message to the complete answer, in milliseconds."""
    max_tokens: Amount | None = None
    """The most tokens that the agent may use."""
    stubs: SkipJsonSchema[tuple[str, ...] | None] = None
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
