"""The agent of the specimens: it says what its prompt says after SAY, and calls tools if the prompt names calls."""

import json
import sys
from pathlib import Path

CALLS = [
    {"tool": "search", "input": {"q": "agentv", "limit": 3}, "output": "3 results", "duration_ms": 40},
    {
        "tool": "fetch",
        "input": {"url": "https://example.org"},
        "output": "skills/pdf/SKILL.md",
        "duration_ms": 900,
    },
    {"tool": "search", "input": {"q": "other"}, "output": "none", "duration_ms": 20},
]

prompt, out = sys.argv[1:]
if "crash" in prompt:
    sys.exit("agent crashed")
text = prompt.split("SAY:", 1)[1].strip()
calls = CALLS if "calls" in prompt else []
result = {
    "text": text,
    "cost_usd": 0.02,
    "duration_ms": 450,
    "token_usage": {"input": 100, "output": 20},
    "output": [{"role": "assistant", "content": text, "tool_calls": calls}],
}
Path(out).write_text(json.dumps(result))
