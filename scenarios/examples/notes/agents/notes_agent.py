"""An agent for an MCP server of notes that knows only the server's descriptions: it guesses where they say nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Tools = dict[str, dict[str, Any]]


class Server:
    """The MCP server in the configuration that evalhub gives to agents."""

    def __init__(self) -> None:
        config = json.loads(Path(os.environ["LLM_TOOL_TEST_MCP_CONFIG"]).read_text())
        (server,) = config["mcpServers"].values()
        words, workspace = [server["command"], *server["args"]], os.environ["LLM_TOOL_TEST_FIXTURE_DIR"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, cwd=workspace, stdin=pipe, stdout=pipe, text=True)
        self.number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        assert self.process.stdin and self.process.stdout
        print(json.dumps(message), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer.get("result") or {}


def described(tools: Tools, word: str, guess: str) -> str:
    """Return the tool whose description has the word, else a guess."""
    return next((name for name, tool in tools.items() if word in tool["description"].lower()), guess)


def argument(tool: dict[str, Any], word: str, guess: str) -> str:
    """Return the argument whose description has the word, else a guess."""
    properties = tool.get("inputSchema", {}).get("properties", {})
    return next((name for name, each in properties.items() if word in each.get("description", "")), guess)


def add(server: Server, tools: Tools, place: str, text: str) -> None:
    name = described(tools, "add a note", "put_note")
    if name not in tools:
        server.ask("tools/call", name=name, arguments={"text": text})
        name = described(tools, "store", "put")
    tool = tools[name]
    text_name, place_name = argument(tool, "text", "text"), argument(tool, "belongs", "place")
    arguments = {text_name: text, place_name: place}
    if server.ask("tools/call", name=name, arguments=arguments)["isError"]:
        # The second try follows the schema.
        required = tool["inputSchema"]["required"]
        arguments = dict(zip(required, (text, "work"), strict=True))
        server.ask("tools/call", name=name, arguments=arguments)


def main(prompt: str) -> None:
    task, _, text = prompt.partition(": ")
    server = Server()
    server.ask(
        "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}
    )
    tools = {tool["name"]: tool for tool in server.ask("tools/list")["tools"]}
    if task.startswith("Note at "):
        add(server, tools, task.removeprefix("Note at "), text)
    elif task == "Find":
        server.ask("tools/call", name=described(tools, "find", "search"), arguments={"words": text})
    print("Done.")


main(sys.argv[1])
