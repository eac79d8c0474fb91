"""Read the four wire formats of models: what was asked, which shell is offered, how many turns have passed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SHELLS = (
    "exec_command",
    "shell_command",
    "shell",
    "Bash",
    "bash",
    "run_shell_command",
    "run_commands",
    "local_shell",
)
"""Names of the shell tool, as agents offer it."""


@dataclass(frozen=True)
class Shell:
    """The tool by which an agent runs a command."""

    name: str
    field: str
    """Name of the argument that takes the command."""
    as_list: bool = False
    several: bool = False
    """Whether it takes several commands."""
    described: bool = False
    """Whether a description is required."""

    def arguments(self, command: str) -> dict[str, Any]:
        """Return the arguments that run a command."""
        value: Any = ["bash", "-lc", command] if self.as_list else [command] if self.several else command
        return {self.field: value, **({"description": "Run a command"} if self.described else {})}


@dataclass(frozen=True)
class AskedConversation:
    """What a request says about its conversation."""

    asked: str
    """The instructions and all texts of the user's side, tool results aside."""
    passed: int
    """Turns of the model so far that called a tool."""
    shell: Shell | None
    id: str
    """The session's name, if the agent sends one."""
    tools: tuple[str, ...] = ()
    """Names of the offered tools."""
    spaces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the tools in each namespace."""

    def spelled(self, tool: str) -> tuple[str, str]:
        """Return a tool as this agent names it, with its namespace.

        `SERVER/TOOL` is a tool of an MCP server, or of a namespace of the agent's own, such as Codex's sub-agents. An offered
        tool that differs in hyphens, dots and the like only is that tool, as agents replace these characters.
        """
        server, slash, name = tool.partition("/")
        if not slash:
            return tool, ""
        for space in (f"mcp__{server}", server):
            if offered_name := _alike(space, self.tools):
                return _alike(name, self.spaces.get(offered_name, ())) or _plain(name), offered_name
        for joined in (f"mcp__{server}__{name}", f"mcp_{server}_{name}", f"{server}_{name}"):
            if offered_name := _alike(joined, self.tools):
                return offered_name, ""
        begun = (f"mcp__{server}__", f"mcp_{server}_", f"{server}_", f"{server}-")
        used = (each for each in begun if any(offered.startswith(each) for offered in self.tools))
        spelled = f"{next(used, begun[0])}{name}"
        return re.sub(r"[^\w-]", "_", spelled, flags=re.ASCII), ""


def read_conversation(body: dict[str, Any], session: str = "") -> AskedConversation:
    """Return the conversation of a request in any of the four formats; `session` is its name in the headers."""
    if "contents" in body:
        body = _of_contents(body)
    messages = _dicts(body.get("input") if "input" in body else body.get("messages"))
    if isinstance(body.get("input"), str):
        messages = [{"role": "user", "content": body["input"]}]
    # Roles of messages that say what to do.
    texts = [
        _text(each.get("content")) for each in messages if each.get("role") in ("user", "system", "developer")
    ]
    asked = "\n".join([*texts, _text(body.get("instructions")), _text(body.get("system"))])
    metadata, tools = body.get("metadata"), _dicts(body.get("tools"))
    id = body.get("prompt_cache_key") or (metadata.get("user_id") if isinstance(metadata, dict) else "")
    names = tuple(name for tool in tools for name, _ in _named_tools(tool))
    spaces = {
        str(space.get("name") or ""): tuple(
            name for tool in _dicts(space.get("tools")) for name, _ in _named_tools(tool)
        )
        for space in tools
        if space.get("type") == "namespace"
    }
    return AskedConversation(
        asked, sum(map(_calls, messages)), _shell(tools), str(id or session), names, spaces
    )


def _alike(name: str, offered: Iterable[str]) -> str:
    """Return the offered name that is the same, else the first that differs in replaced characters only; else empty."""
    offered = list(offered)
    if name in offered:
        return name
    return next((each for each in offered if _plain(each) == _plain(name)), "")


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def _of_contents(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request in Gemini's format as one of chat completions."""
    messages = []
    for content in _dicts(body["contents"]):
        parts = _dicts(content.get("parts"))
        called = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]
        role = "assistant" if content.get("role") == "model" else "user"
        messages.append({"role": role, "content": parts, "tool_calls": called})
    instructions = body.get("systemInstruction")
    declared = [one for tool in _dicts(body.get("tools")) for one in _dicts(tool.get("functionDeclarations"))]
    tools = [
        {**function, "parameters": function.get("parametersJsonSchema") or function.get("parameters")}
        for function in declared
    ]
    system = instructions.get("parts") if isinstance(instructions, dict) else None
    return {"messages": messages, "system": system, "tools": tools}


def _calls(message: dict[str, Any]) -> int:
    """Count a message's calls: an item of its own, a list beside the text, or blocks of the content."""
    if message.get("type") in ("function_call", "local_shell_call", "custom_tool_call"):
        return 1
    blocks = [each for each in _dicts(message.get("content")) if each.get("type") == "tool_use"]
    return len(_dicts(message.get("tool_calls"))) + len(blocks)


def _shell(tools: list[dict[str, Any]]) -> Shell | None:
    offered = {name: schema for tool in tools for name, schema in _named_tools(tool)}
    name = next((name for name in SHELLS if name in offered), None)
    if name is None:
        return None
    schema = offered[name]
    fields = schema.get("properties") or {}
    field = next((each for each in ("cmd", "commands") if each in fields), "command")
    several = field == "commands"
    as_list = not several and (fields.get(field) or {}).get("type") == "array"
    return Shell(name, field, as_list, several, "description" in (schema.get("required") or ()))


def _named_tools(tool: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    function = tool["function"] if isinstance(tool.get("function"), dict) else tool
    name = str(function.get("name") or tool.get("type") or "")
    schema = function.get("parameters") or function.get("input_schema")
    yield name, schema if isinstance(schema, dict) else {}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or "") for part in _dicts(content))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def compact_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"))
