"""How a program is found among an agent's commands, how it is run, and how it is checked."""

from __future__ import annotations

from pydantic import Field

from evaluators.values import Value


class Tool(Value):
    """The program whose use is tested (the `target:` section of llm-tool-test)."""

    binary: str = ""
    command_pattern: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    health_check: str = ""
    version_command: str = ""
