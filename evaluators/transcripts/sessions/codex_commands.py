"""The commands in Codex's tool calls, and what the header of a result says of their end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.model import Json
from evaluators.transcripts.stream import json_or_none, mapping_or_empty
from evaluators.transcripts.traces import line_of_shell, shell_command

_POWERSHELL = re.compile(r"^(?:.*[\\/])?(?:powershell|pwsh)(?:\.exe)?$", re.IGNORECASE)
_HEADER_LINE = re.compile(
    r"(?:Exit code|Chunk ID|Wall time|Process exited with code|Process running with session ID"
    r"|Original token count|Total output lines|Script (?:completed|failed|running))\b[^\n]*\n?"
)
_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,5})\b", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_OUTPUT = re.compile(r"\n*Output:\n")
_INNER = re.compile(r"\btools\.(?:exec_command|shell_command)\s*\(\s*\{")
_COMMAND_KEY = re.compile(r"""(?:^|[\s,{])["']?(?:cmd|command)["']?\s*:\s*(?=["'`])""")
_TEXTS = {
    '"': re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL),
    "`": re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r?\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class Header(Struct, frozen=True):
    """What Codex writes above a command's output."""

    output: str
    exit_code: int | None = None
    session: int | None = None
    """The id of the process, if it still runs."""


def read_header(text: str) -> Header:
    """Return the header and the output below it; a header that the output quotes is none."""
    end = 0
    while line := _HEADER_LINE.match(text, end):
        end = line.end()
    head, code, running = text[:end], _EXIT_CODE.search(text[:end]), _RUNNING.search(text[:end])
    below = _OUTPUT.match(text, end) if head else None
    return Header(
        text[below.end() :] if below else text,
        int(code[1]) if code else None,
        int(running[1]) if running else None,
    )


def command_line_of(name: str, arguments: Json) -> str | None:
    """Return the command line: of `["bash", "-lc", LINE]` the line, which the shell reads."""
    words_of = mapping_or_empty(arguments).get("command", mapping_or_empty(arguments).get("cmd"))
    match words_of:
        case [str(program), *_, str(flag), str(line)] if _POWERSHELL.match(program) and flag.lower() in (
            "-command",
            "-c",
        ):
            return line
    return line_of_shell(words_of) or shell_command(name, arguments)


def script_commands(script: str) -> Iterator[str]:
    """Yield the commands that a script of the `exec` tool runs, as far as they are written out in it."""
    for call in _INNER.finditer(script):
        rest = script[call.end() : call.end() + LONGEST_TEXT]
        key = _COMMAND_KEY.search(rest)
        if key is None or "}" in rest[: key.start()]:
            continue
        quote = rest[key.end()]
        text = _TEXTS[quote].match(rest, key.end())
        if text and not (quote == "`" and "${" in text[1]):
            yield _unescape(text[1], quote)


def _unescape(text: str, quote: str) -> str:
    decoded = json_or_none(f'"{text}"'.encode()) if quote == '"' else None
    return decoded if isinstance(decoded, str) else _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    sequence = escape[1]
    if sequence[0] in "ux" and len(sequence) > 1:
        code = int(sequence[1:].strip("{}"), 16)
        return chr(code) if code < 0x110000 else ""
    return "" if sequence.endswith("\n") else _ESCAPED.get(sequence, sequence)
