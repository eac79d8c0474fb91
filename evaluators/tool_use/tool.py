"""The tool under test: how to find its commands, run it and check it."""

from __future__ import annotations

from pydantic import Field

from evaluators.model import Value


class McpServer(Value):
    """An MCP server as the tool under test (`target.mcp`), by its command or its address."""

    name: str
    """As agents see it: part of its tools' names."""
    command: str = ""
    """A shell command that speaks MCP on standard input and output, run in the workspace."""
    url: str = ""
    """The address of a server with Streamable HTTP."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of each request to the address; values name variables as `${{ VAR }}`."""
    transport: str = ""
    """`http`, or empty for the same."""
    help_tools: tuple[str, ...] = ()
    """Tools whose calls count as help, such as a search of its documentation."""


class Tool(Value):
    """The program under test (`target:` in llm-tool-test)."""

    binary: str = ""
    command_pattern: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    health_check: str = ""
    version_command: str = ""
    files: tuple[str, ...] = ()
    """Patterns of files in the fixture that are the tool, beside its binary."""
    mcp: McpServer | None = None
    """The server whose tools are the subcommands; then there is no binary."""

    @property
    def title(self) -> str:
        """Return what messages call it."""
        return self.mcp.name if self.mcp else self.binary or "the tool"
