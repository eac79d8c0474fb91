"""A small MCP server of notes on standard input and output, with descriptions that say too little."""

import json
import sys
from pathlib import Path

FILE = Path("notes.txt")
TEXT = {"type": "string"}
TOOLS = {
    "put": ("Stores an entry.", {"body": TEXT, "shelf": {"enum": ["work", "home"]}}, ["body", "shelf"]),
    "find": ("Finds entries.", {"words": TEXT}, ["words"]),
    "wipe": ("Cleans up.", {}, []),
}


def call(name, given):
    _, properties, required = TOOLS[name]
    if wrong := [key for key in required if key not in given] + [
        key for key in given if key not in properties
    ]:
        raise ValueError(f"wrong arguments: {', '.join(wrong)}")
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    if name == "put":
        FILE.write_text("\n".join([*lines, f"{given['shelf']}: {given['body']}"]) + "\n")
        return "Stored."
    if name == "wipe":
        FILE.unlink(missing_ok=True)
        return "Clean."
    return "\n".join(line for line in lines if given["words"] in line) or "Nothing found."


def answer(method, params):
    if method == "initialize":
        about = {"name": "notes", "version": "1.0"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": about,
        }
    if method == "tools/list":
        schemas = {
            name: {"type": "object", "properties": p, "required": r} for name, (_, p, r) in TOOLS.items()
        }
        return {
            "tools": [{"name": n, "description": TOOLS[n][0], "inputSchema": s} for n, s in schemas.items()]
        }
    try:
        text, failed = call(params["name"], params.get("arguments") or {}), False
    except KeyError:
        text, failed = f"Unknown tool: {params['name']}", True
    except ValueError as error:
        text, failed = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
