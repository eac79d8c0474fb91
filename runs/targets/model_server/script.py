"""Read the script of a model server: what the model does, turn by turn."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from evaluators.model import Json
from scenarios.formats.parsed import Mirror, Problem, ScenarioFileError, validate
from scenarios.formats.yaml_text import read_yaml

Fault = Literal["cut", "nonsense", "silent"] | int
"""An HTTP status, a stream that breaks off, arguments that aren't JSON, or no answer at all."""


class ScriptedTurn(Mirror):
    """One answer of the model: a shell command, a call of a tool or a text, after `times` faults of a kind."""

    command: str | None = Field(default=None, min_length=1)
    tool: str | None = Field(default=None, min_length=1)
    """A tool by the agent's own name, or `SERVER/TOOL` of an MCP server."""
    arguments: dict[str, Json] = Field(default_factory=dict)
    text: str | None = None
    also: list[ScriptedTurn] = []
    """Further calls in the same answer, as models make them at once."""
    fault: Fault | None = None
    times: int = Field(default=1, ge=1)
    """How often the fault comes before the answer."""
    retry_after_seconds: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        answers = [each for each in (self.command, self.tool, self.text) if each is not None]
        if len(answers) > 1:
            raise ValueError("A turn is one of `command`, `tool` and `text`")
        if not answers and self.fault is None:
            raise ValueError("A turn needs a `command`, a `tool`, a `text` or a `fault`")
        if self.also and (self.command is self.tool is None):
            raise ValueError("`also` goes with a `command` or a `tool`")
        if any(each.also or each.fault is not None or each.text is not None for each in self.also):
            raise ValueError("Each of `also` is a `command` or a `tool`")
        if isinstance(self.fault, int) and not 400 <= self.fault <= 599:
            raise ValueError("A fault is a status from 400 to 599, `cut`, `nonsense` or `silent`")
        return self


class ScriptedSession(Mirror):
    """The turns of the conversations whose question or instructions contain `when`; without it, of all others."""

    when: str = ""
    turns: list[ScriptedTurn] = Field(min_length=1)


class TokenCounts(Mirror):
    """What each answer says that it used; the cache is part of input, reasoning of output.

    Each format has the provider's own meaning of them.
    """

    input_tokens: int = Field(default=100, ge=0)
    output_tokens: int = Field(default=20, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    cache_write_1h_tokens: int = Field(default=0, ge=0)
    reasoning_tokens: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.fresh_tokens < 0 or self.reasoning_tokens > self.output_tokens:
            raise ValueError(
                "Tokens of the cache are part of `input_tokens`, those of reasoning of `output_tokens`"
            )
        return self

    @property
    def fresh_tokens(self) -> int:
        """Input tokens beside the cache."""
        cached = self.cache_read_tokens + self.cache_write_tokens + self.cache_write_1h_tokens
        return self.input_tokens - cached


class ModelScript(Mirror):
    """Everything that a model server plays."""

    turns: list[ScriptedTurn] = []
    sessions: list[ScriptedSession] = []
    usage: TokenCounts = TokenCounts()

    @model_validator(mode="after")
    def _plays_something(self) -> Self:
        if not self.turns and not self.sessions:
            raise ValueError("A script needs `turns`, a list of what the model does, or `sessions`")
        return self

    def turns_for(self, asked: str) -> list[ScriptedTurn]:
        """Return the turns of a conversation that asks this; none if no session fits."""
        fitting = (session.turns for session in self.sessions if session.when in asked)
        return next(fitting, self.turns)


def read_script(content: bytes, file: str) -> ModelScript:
    """Return the script in a YAML file. Raises `ScenarioFileError` with every error and its line."""
    document = read_yaml(content, file)
    script, problems = validate(ModelScript, document.value, document)
    if script is None or problems:
        empty = Problem(file, 1, "", "The script is empty.", "Write `turns`.", "model-server/empty")
        raise ScenarioFileError(problems or [empty])
    return script
