"""Likely causes by the interaction metrics (llm-tool-test evaluation, Diagnostic Patterns); wasted tokens.

A turn's tokens, read and written, are divided equally among its calls. A call is waste if a command of the tool
in it failed, if it asks for help that was read before, or if it comes after the task was done: after the last
successful command of a passed trial that had not run before. The turns of the final answer aren't waste.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from evaluators.model import Command, Score, Transcript
from evaluators.tool_use.attempts import call_message
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import Interaction

FAILED, HELP, AFTER = "tokens_in_failed_commands", "tokens_in_repeated_help", "tokens_after_done"


class _Turn(Struct):
    start: int
    """Index of its first event."""
    tokens: int
    calls: list[int]
    """Indexes of its calls."""


def waste_scores(transcript: Transcript, commands: Sequence[Command], *, passed: bool) -> tuple[Score, ...]:
    """Return the wasted tokens by cause and in all; nothing if the transcript doesn't have the tokens of each turn.

    When a trial did not pass, the task was never done.
    """
    turns = _turns(transcript)
    if not turns or not commands:
        return ()
    causes = dict(_causes(commands))
    done = _find_done(commands) if passed else None
    wasted = dict.fromkeys((FAILED, HELP, *([AFTER] if done is not None else [])), 0.0)
    for turn in turns:
        for call in turn.calls:
            cause = causes.get(call) or (AFTER if done is not None and call > done else "")
            if cause:
                wasted[cause] += turn.tokens / len(turn.calls)
    scores = tuple(Score("interaction", name, round(value, 1)) for name, value in wasted.items())
    return (*scores, Score("interaction", "wasted_tokens", round(sum(wasted.values()), 1)))


def _turns(transcript: Transcript) -> list[_Turn]:
    turns = [
        _Turn(index, event.usage.input + event.usage.output, [])
        for index, event in enumerate(transcript.events)
        if event.usage is not None
    ]
    starts = [turn.start for turn in turns]
    for index, event in enumerate(transcript.events):
        if event.type == "tool_call":
            place = bisect_right(starts, index) - 1
            if place < 0:
                return []
            turns[place].calls.append(index)
    return turns


def _causes(commands: Sequence[Command]) -> Iterator[tuple[int, str]]:
    """Yield the calls that are waste in themselves; a failure counts before repeated help."""
    asked: set[str] = set()
    failed = {command.event for command in commands if command.failed}
    for command in commands:
        if command.event is None:
            continue
        if command.event in failed:
            yield command.event, FAILED
        elif command.help and command.line in asked:
            yield command.event, HELP
        if command.help:
            asked.add(command.line)


def _find_done(commands: Sequence[Command]) -> int | None:
    """Return the call after which nothing new was done."""
    seen: set[str] = set()
    done: int | None = None
    for command in commands:
        if not (command.help or command.failed or command.line in seen):
            done = command.event
            seen.add(command.line)
    return done


ERRING = ("errors-without-help", "errors-despite-help")
"""Patterns of failing commands."""
RETRIES = "retries-on-a-command"
CLEAR = "clear-docs"
"""The one pattern that isn't a problem."""


class Thresholds(Struct, frozen=True):
    """From where a metric counts as high: evalhub's defaults, because the specification has none."""

    error_rate: float = 0.25
    help_calls: int = 3
    retries: int = 2
    """Retries of one subcommand …"""
    retry_share: float = 0.3
    """… and their share of its calls."""
    commands: int = 15


class Diagnosis(Struct, frozen=True):
    """A matching pattern."""

    pattern: str
    """A stable id."""
    sentence: str
    evidence: tuple[str, ...]


def diagnose(
    metrics: Interaction,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 immutable
    messages: Mapping[int, str] | None = None,
    *,
    failed: bool = False,
    quoted: Collection[int] = (),
) -> tuple[Diagnosis, ...]:
    """Return the patterns that match the metrics; none without commands.

    A trial that `failed`, and one whose ends are estimated from text, never shows that the docs are clear.
    `messages` are the error messages of failed commands by their number; evidence quotes them. `quoted` are the events
    in which the agent repeated the guidance: what it says was not guessed.
    """
    if not metrics.available:
        return ()
    messages = messages or {}
    missing = [each for each in metrics.commands if is_program_missing(each, messages.get(each.n, ""))]
    # The docs can't be judged by calls that never reached the tool.
    not_found = (_not_found(metrics, missing, messages),) if missing else ()
    if 2 * len(missing) >= metrics.error_count > 0 and missing:
        return not_found
    problems = (
        *not_found,
        *_errors_and_help(metrics, thresholds, {each.n for each in missing}, messages, quoted),
        *_retries(metrics, thresholds, messages),
        *_many_commands(metrics, thresholds),
    )
    is_measured = bool(metrics.total_commands) and metrics.error_rate is not None
    is_clear = is_measured and metrics.completed and not failed and metrics.ends != "estimated"
    return problems or (tuple(_clear(metrics, thresholds)) if is_clear else ())


def error_messages(transcript: Transcript, metrics: Interaction) -> dict[int, str]:
    """Return the error messages of failed commands by the command's number; empty ones are left out."""
    failed = [each for each in metrics.commands if each.failed and each.event is not None]
    if not failed or metrics.source == "transcript":
        return {}
    by_event = {call.index: call for call in pair_calls(transcript.events)}
    messages = {each.n: call_message(by_event[each.event]) for each in failed if each.event in by_event}
    return {n: message for n, message in messages.items() if message}


NOT_FOUND = "tool-not-found"
_INTERPRETER = re.compile(
    r"(?:\S*/)?(?:python[\d.]*|node|bash|sh|zsh|ruby|perl|php|deno|bun)\s+(?:-\S+\s+)*(\S+)"
)
_NO_FILE = re.compile(r"can't open|cannot open|cannot find module|no such file", re.IGNORECASE)
MOST_QUOTED = 3


def is_program_missing(command: Command, message: str) -> bool:
    """Return whether a command failed because its program or script does not exist."""
    # A shell's exit codes for a program that it can't execute or find (POSIX, Shell Command Language,
    # 2.8.2).
    if command.exit_code in (126, 127):
        return True
    script = _INTERPRETER.match(command.line) if command.failed and _NO_FILE.search(message) else None
    return script is not None and script[1].rpartition("/")[2] in message


def _not_found(metrics: Interaction, missing: list[Command], messages: Mapping[int, str]) -> Diagnosis:
    sentence = (
        "The tool or its script was not found, so this says nothing about the docs. Install it on the worker, or fix"
        " the scenario's workspace."
    )
    first = missing[0]
    code = f"exit code {first.exit_code}"
    evidence = f"{len(missing)} of {metrics.total_commands} commands ended with {code}: {first.line}"
    return Diagnosis(NOT_FOUND, sentence, (evidence, *_quotes(missing, messages)))


def _quotes(commands: Iterable[Command], messages: Mapping[int, str]) -> tuple[str, ...]:
    """Return different error messages with their first command."""
    lines: dict[str, str] = {}
    for command in commands:
        if message := messages.get(command.n):
            lines.setdefault(message, f"`{command.line}`: {message}")
    return tuple(lines.values())[:MOST_QUOTED]


def threshold_sentence(pattern: str, limit: Thresholds = Thresholds()) -> str:  # noqa: B008 immutable
    """Return the thresholds of a pattern in a sentence, empty for an unknown pattern."""
    both = f"Thresholds: error rate ≥ {_percent(limit.error_rate)}, help calls ≥ {limit.help_calls}."
    sentences = {
        "errors-without-help": f"{both} Only the error rate was exceeded.",
        "errors-despite-help": f"{both} Both were exceeded.",
        "help-instead-of-docs": f"{both} Only the help calls were exceeded.",
        RETRIES: f"Shown when at least {limit.retries} calls and {_percent(limit.retry_share)} of calls are retries.",
        NOT_FOUND: "Shown when a command ends with exit code 126 or 127, or its script does not exist.",
        CLEAR: f"{both} Neither was reached, and the trial completed.",
        "many-commands": f"Shown when a completed trial ran at least {limit.commands} commands.",
    }
    return sentences.get(pattern, "")


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _errors_and_help(
    metrics: Interaction,
    limit: Thresholds,
    missing: set[int],
    messages: Mapping[int, str],
    quoted: Collection[int],
) -> Iterator[Diagnosis]:
    errors = metrics.error_count - len(missing)
    rate = errors / (metrics.known or metrics.total_commands) if missing else metrics.error_rate or 0.0
    erring = rate >= limit.error_rate
    seeking = metrics.help_seeking >= limit.help_calls
    failed = [each for each in metrics.commands if each.failed and each.n not in missing]
    evidence = (
        *_error_and_help_evidence(errors, metrics, limit),
        *(_quotes(failed, messages) if erring else ()),
    )

    if erring and not seeking:
        is_quoted = bool(failed) and all(each.event in quoted for each in failed)
        sentence = (
            "Commands of the guidance failed: the tool may have changed, or the docs contain a wrong example."
            if is_quoted
            else "The agent guessed the syntax; the docs may contain a wrong example."
        )
        yield Diagnosis("errors-without-help", sentence, evidence)
    elif erring:
        sentence = "The tool's help was not enough: it may lack examples or describe arguments unclearly."
        yield Diagnosis("errors-despite-help", sentence, evidence)
    elif seeking:
        sentence = "The help works, but the docs say too little up front. Add examples to the guidance."
        yield Diagnosis("help-instead-of-docs", sentence, evidence)


def _retries(metrics: Interaction, limit: Thresholds, messages: Mapping[int, str]) -> Iterator[Diagnosis]:
    retried = {
        sub.name: f"{sub.name}: {sub.retries_after_failure} of {sub.calls} calls were retries."
        for sub in metrics.subcommands
        if sub.retries_after_failure >= limit.retries
        and sub.retries_after_failure >= limit.retry_share * sub.calls
    }
    if retried:
        sentence = "These error messages don't help the agent recover."
        failed = [each for each in metrics.commands if each.failed and each.subcommand in retried]
        yield Diagnosis(RETRIES, sentence, (*retried.values(), *_quotes(failed, messages)))


def _many_commands(metrics: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    if metrics.completed and metrics.total_commands >= limit.commands:
        sentence = "The docs describe commands but no workflow. Add a section on common workflows."
        yield Diagnosis(
            "many-commands", sentence, (f"{metrics.total_commands} commands (threshold {limit.commands}).",)
        )


def _clear(metrics: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    """Yield that few errors and little help show clear docs; call it only where no problem was found."""
    sentence = "The docs are clear: few errors and little need for help."
    yield Diagnosis(CLEAR, sentence, _error_and_help_evidence(metrics.error_count, metrics, limit))


def _error_and_help_evidence(errors: int, metrics: Interaction, limit: Thresholds) -> tuple[str, ...]:
    return (
        f"{errors} of {metrics.known or metrics.total_commands} commands failed (threshold {_percent(limit.error_rate)}).",
        f"{metrics.help_seeking} help calls (threshold {limit.help_calls}).",
    )
