"""What makes the output of a `cli` target's program readable, by the program's name."""

from __future__ import annotations

import re
from collections.abc import Mapping

_STREAM = "Set `parser: {parser}` and let it print its stream: `{command}`."


_OWN = "Write `provider: {kind}` instead of `cli`: it reads the program's stream and session (docs/providers.md)."


_RECORD = (
    "evalhub has no reader for it: name `target.binary` in the scenario, so that the tool is recorded where the worker "
    "can, or let it write events to {EVENTS_FILE}."
)


_ADVICE: Mapping[str, str] = {
    "codex": _STREAM.format(parser="codex", command="codex exec --json"),
    "claude": _STREAM.format(parser="claude_code", command="claude -p --output-format stream-json --verbose"),
    "opencode": _STREAM.format(parser="opencode", command="opencode run --format json"),
    "gemini": _OWN.format(kind="gemini_cli"),
    "qwen": _OWN.format(kind="qwen_code"),
    "copilot": _OWN.format(kind="copilot_cli"),
    "pi": _RECORD,
    "cline": _RECORD,
    "aider": "Set `parser: aider` and print its chat history: `aider --message {PROMPT} > /dev/null; cat "
    ".aider.chat.history.md`. It has no exit codes; name `target.binary` in the scenario, too, so that the tool is "
    "recorded where the worker can.",
    "mini": "Set `parser: mini_swe_agent` and print its trajectory: `mini -o FILE > /dev/null; cat FILE`.",
}


OTHERS = (
    "Name `target.binary` in the scenario, so that the tool is recorded where the worker can. evalhub reads the streams of "
    "`codex exec --json`, `claude --output-format stream-json --verbose` and `opencode run --format json` with `parser:`, and "
    "events written to {EVENTS_FILE}."
)
"""For programs that aren't known."""


_WORD = re.compile(r"[\w.@/-]+")


def how_to_read(template: str) -> str:
    """Return what makes a command's output readable, in sentences, by the first known program that it names."""
    names = (word.rsplit("/", 1)[-1].partition("@")[0] for word in _WORD.findall(template))
    program = next((name for name in names if name in _ADVICE), "")
    return f"{program}: {_ADVICE[program]}" if program else OTHERS
