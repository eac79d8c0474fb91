"""The tool under test: how to find its commands, run it and check it."""

from __future__ import annotations

from pydantic import Field

from evaluators.values import Value


class Tool(Value):
    """The program under test (`target:` in llm-tool-test)."""

    binary: str = ""
    command_pattern: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    health_check: str = ""
    version_command: str = ""
    files: tuple[str, ...] = ()
    """Patterns of files in the fixture that are the tool, beside its binary."""
