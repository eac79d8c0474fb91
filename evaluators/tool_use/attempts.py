"""Count the attempts at each subcommand and collect its error messages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from evaluators.model import Command, Json, Transcript
from evaluators.tool_use.calls import MCP_MARK, Call, pair_calls
from evaluators.tool_use.shell import without_ansi

MOST_ERRORS = 5
"""The number of most frequent messages kept for one subcommand."""
LONGEST_MESSAGE = 160
"""Characters."""
SEARCHED_CHARACTERS = 20_000
"""Characters at the beginning and at the end of an output that are searched for its message."""
_CAUSE = re.compile(
    r"(?i)error\b|\b(?:fatal|fail(?:ed|ure)|cannot|can't|unknown|unexpected|invalid|no such|not found|denied|missing)\b"
)
_PREFIX = re.compile(r"(?i)^(?:[\w.-]+:\s+)?(?:error|fatal):\s*")


class Attempts(Struct, frozen=True, omit_defaults=True):
    """The attempts at one subcommand in a trial."""

    tries: dict[str, int] = field(default_factory=dict)
    """Successes by attempt number: how often the first attempt worked, the second, and so on."""
    errors: dict[str, int] = field(default_factory=dict)
    """Failures by message."""


def find_attempts(transcript: Transcript, commands: Sequence[Command]) -> dict[str, Attempts]:
    """Return the attempts at each subcommand, from the commands of `number_commands`. Help calls are not attempts.

    Messages are known only for commands in the transcript's events.
    """
    tries = _tries(commands)
    errors = _errors(transcript, commands)
    return {name: Attempts(tries.get(name, {}), errors.get(name, {})) for name in sorted({*tries, *errors})}


def _tries(commands: Sequence[Command]) -> dict[str, dict[str, int]]:
    reached: dict[int, int] = {}
    tries: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for command in commands:
        number = reached.get(command.retry_of, 0) + 1 if command.retry_of is not None else 1
        if command.failed:
            reached[command.n] = number
        elif command.subcommand and command.exit_code == 0 and not command.help:
            tries[command.subcommand][str(number)] += 1
    return {name: dict(counts) for name, counts in tries.items()}


def _errors(transcript: Transcript, commands: Sequence[Command]) -> dict[str, dict[str, int]]:
    failed = [each for each in commands if each.failed and each.subcommand and not each.help]
    if not failed or not transcript.events:
        return {}
    paired = {call.index: call for call in pair_calls(transcript.events)}
    errors: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for command in failed:
        call = paired.get(command.event) if command.event is not None else None
        message = call_message(call) if call else ""
        if message:
            errors[command.subcommand or ""][message] += 1
    return {name: dict(counts.most_common(MOST_ERRORS)) for name, counts in errors.items()}


def call_message(call: Call) -> str:
    """Return the error message of a failed call, empty without output; evalhub's own where it found the error."""
    return stated_message(call) or error_message(_output(call))


def stated_message(call: Call) -> str:
    """Return what evalhub itself found wrong with a call of an MCP server; empty otherwise."""
    marked = call.event.metadata.get(MCP_MARK)
    return str(marked.get("message") or "") if isinstance(marked, Mapping) else ""


def _output(call: Call) -> Json:
    result = call.result
    if result is not None and (result.output is not None or result.text):
        return result.output if result.output is not None else result.text
    return call.event.output


def error_message(output: Json) -> str:
    """Return the line of a failed command's output that names the cause, without its `error:` prefix.

    Looks into stderr first. Empty if nothing was printed.
    """
    if isinstance(output, Mapping):
        if isinstance(content := output.get("content"), list):
            # The result of an MCP server's tool.
            return error_message(
                "\n".join(str(each.get("text") or "") for each in content if isinstance(each, Mapping))
            )
        names = ("stderr", "stdout", "message")
        return next(filter(None, (error_message(output.get(name)) for name in names)), "")
    if not isinstance(output, str):
        return ""
    text = (
        output
        if len(output) <= 2 * SEARCHED_CHARACTERS
        else f"{output[:SEARCHED_CHARACTERS]}\n{output[-SEARCHED_CHARACTERS:]}"
    )
    lines = [" ".join(line.split()) for line in without_ansi(text).split("\n") if line.strip()]
    if not lines:
        return ""
    cause = None if "Traceback (most recent call last)" in text else next(filter(_CAUSE.search, lines), None)
    return _PREFIX.sub("", cause or lines[-1])[:LONGEST_MESSAGE]
