"""An MCP server on standard input and output that insists on the handshake and gives its tools in two pages."""

import json
import sys

PAGES = {
    None: {"tools": [{"name": "count", "description": "Does count."}], "nextCursor": "2"},
    "2": {"tools": [{"name": "add", "description": "Does add."}]},
}

greeted = ready = False
for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    if method == "notifications/initialized":
        ready = greeted
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        greeted = True
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
        answer["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}}
    elif not ready or "--closed" in sys.argv:
        answer["error"] = {"code": -32000, "message": "The shop is closed"}
    else:
        answer["result"] = PAGES[message["params"].get("cursor")]
    print(json.dumps(answer), flush=True)
