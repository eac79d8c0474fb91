"""Layer 1: how the agent used the tool (llm-tool-test evaluation, Layer 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct, field

from evaluators.model import Command, End, Json, Score, Source, Transcript
from evaluators.patterns import PatternError, pattern_budget
from evaluators.tool_use.calls import Call, pair_calls
from evaluators.tool_use.mcp_calls import McpFailure, find_mcp_calls
from evaluators.tool_use.recorded_commands import RecordedCall, find_recorded
from evaluators.tool_use.text_commands import find_in_text
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import (
    READING_SECONDS,
    FoundCommands,
    TooManyCommands,
    find_in_shell_calls,
    find_in_tool_calls,
    make_matcher,
)

RULES_VERSION = 3
"""The version of the rules by which commands are counted; a change of a count or an end changes it."""

RATES = ("error_rate", "retry_rate", "first_try_success_rate", "iteration_ratio")
COUNTS = (
    "total_commands",
    "unique_commands",
    "error_count",
    "retry_count",
    "help_seeking",
    "retries_after_failure",
    "exact_repeats",
    "unknown_exit",
    "known",
    "estimated",
    "not_run",
    "indirect",
    "mentioned",
)


class Subcommand(Struct, gc=False):
    """The calls of one subcommand; help calls count for the subcommand they ask about."""

    name: str
    calls: int = 0
    errors: int = 0
    first_tries: int = 0
    helps: int = 0
    retries_after_failure: int = 0
    unknown: int = 0
    helps_before: int = 0
    """Help calls before its first call."""


class Interaction(Struct, frozen=True):
    """The metrics of layer 1. Without commands, rates are 0.0 and `available` is false.

    The error rate and the first-try success rate are over the commands whose end is known, and None if no end is.
    """

    available: bool = False
    source: Source = "none"
    completed: bool = False
    total_commands: int = 0
    unique_commands: int = 0
    error_count: int = 0
    error_rate: float | None = 0.0
    retry_count: int = 0
    retry_rate: float = 0.0
    help_seeking: int = 0
    first_try_success_rate: float | None = 0.0
    iteration_ratio: float = 0.0
    retries_after_failure: int = 0
    exact_repeats: int = 0
    """Commands that repeat an earlier line."""
    unknown_exit: int = 0
    known: int = 0
    """Commands whose end is known, `total_commands` less `unknown_exit`."""
    estimated: int = 0
    """Known ends that are estimated from text."""
    not_run: int = 0
    """Calls that never ran, such as denied ones; not among the commands."""
    indirect: int = 0
    """Recorded calls that other programs made, such as make; not among the commands."""
    indirect_by: dict[str, int] = field(default_factory=dict)
    """Indirect calls by the program that made them."""
    mentioned: int = 0
    """Shell commands that name the tool and have no command of it; not among the commands."""
    printed_errors: tuple[int, ...] = ()
    """The numbers of commands with an unknown end whose output has an error message."""
    unread: int = 0
    """Shell calls that may have commands of the tool and were not read in time; the rates are None then."""
    unrecorded: int = 0
    """Successful calls that the agent's stream states and the record doesn't have."""
    lost: int = 0
    """Executions of the tool that could not be recorded."""
    ends: End = "unknown"
    """The source of ends: recorded, reported or estimated; `unknown` without commands."""
    rules: int = RULES_VERSION
    subcommands: tuple[Subcommand, ...] = ()
    commands: tuple[Command, ...] = ()
    failures: dict[str, int] | None = None
    """Failed calls of an MCP server by `McpFailure`; None for other tools."""
    problem: str = ""
    """Why the commands could not be found, in a sentence."""

    def as_json(self) -> dict[str, Json]:
        """The `interaction` object of the REST interface, without the commands."""
        fields: dict[str, Json] = msgspec.to_builtins(self)
        del fields["commands"]
        if self.failures is None:
            del fields["failures"]
        return fields


def analyse(
    transcript: Transcript,
    tool: Tool | None,
    *,
    completed: bool,
    record: Sequence[RecordedCall] | None = None,
    lost: int = 0,
) -> Interaction:
    """Return the metrics of a transcript: from the record, else its events if they are complete, else its text.

    A known agent's stream, session file or trace is complete, also without a call; an own agent's events are if they
    include one. A record that `lost` executions counts only beside events; without any, rates are not measured.
    Without a tool, every tool call is a command; with one, only its own commands are.
    `completed` is whether the agent's process exited with code 0 before the time limit.
    """
    paired = pair_calls(transcript.events)
    source = _source(transcript, has_calls=bool(paired))
    try:
        found_commands = _find_commands(transcript, paired, tool, is_text=source == "transcript")
    except (PatternError, TooManyCommands) as error:
        return Interaction(source=source, completed=completed, problem=str(error))
    if found_commands is None:
        return Interaction(completed=completed)
    counted = msgspec.structs.replace(
        compute_metrics(found_commands.commands, source=source, completed=completed),
        not_run=found_commands.not_run,
        mentioned=found_commands.mentioned,
        unrecorded=found_commands.unrecorded,
        unread=found_commands.unread,
    )
    if source == "transcript" and not counted.available:
        is_complete = bool(transcript.events) or bool(tool and tool.mcp)
        counted = _without_commands(transcript, is_complete=is_complete, completed=completed)
    if transcript.unseen_agents or counted.unread:
        counted = without_rates(counted)
    if record is None or tool is None or tool.mcp:
        return _with_failures(counted) if tool and tool.mcp else counted
    return _measure_record(record, lost, paired, tool, counted)


def _source(transcript: Transcript, *, has_calls: bool) -> Source:
    """Return what the commands are read from."""
    # Sources that have every call: without one, nothing was called, whatever the answer shows.
    if has_calls or (transcript.events and transcript.source in ("stream", "trace")):
        return transcript.source
    return "transcript" if transcript.text else "none"


def try_pattern(transcript: Transcript, tool: Tool) -> Interaction:
    """Return what a tool's pattern, else its program's name, finds. Raises `PatternError`."""
    with pattern_budget():
        make_matcher(tool.binary, tool.command_pattern)
        interaction = analyse(transcript, tool, completed=True)
    if interaction.problem:
        raise PatternError(interaction.problem)
    return interaction


def _without_commands(transcript: Transcript, *, is_complete: bool, completed: bool) -> Interaction:
    """Return the metrics of output in which no command was seen.

    Events without a call, and the record of an MCP server, say that there was none; text doesn't: it may be the answer
    alone. `is_complete` is whether there are such events or records.
    """
    if is_complete and transcript.source != "transcript":
        return Interaction(source=transcript.source, completed=completed)
    return Interaction(completed=completed, error_rate=None, first_try_success_rate=None)


def _measure_record(
    record: Sequence[RecordedCall], lost: int, paired: Sequence[Call], tool: Tool, counted: Interaction
) -> Interaction:
    """Return the metrics of the record; of the agent's events, if there are any, where it lost calls."""
    matcher = make_matcher(tool.binary, tool.command_pattern)
    if matcher is None:
        return counted
    if lost and paired:
        return msgspec.structs.replace(counted, lost=lost)
    try:
        found_commands = find_recorded(record, paired, matcher)
    except (PatternError, TooManyCommands) as error:
        return Interaction(source="recorded", completed=counted.completed, problem=str(error))
    recorded = msgspec.structs.replace(
        compute_metrics(found_commands.commands, source="recorded", completed=counted.completed),
        not_run=counted.not_run,
        indirect=sum(found_commands.indirect_by.values()),
        indirect_by=dict(found_commands.indirect_by),
        lost=lost,
    )
    if lost:
        # Those of a part.
        return msgspec.structs.replace(recorded, error_rate=None, first_try_success_rate=None)
    return msgspec.structs.replace(
        recorded,
        unrecorded=_count_unrecorded(counted.commands, found_commands.commands) if paired else 0,
    )


def _count_unrecorded(stated: Sequence[Command], recorded: Sequence[Command]) -> int:
    """Return how many commands the agent's events state as successful beyond the recorded ones of their subcommand."""
    successes = Counter(each.subcommand for each in stated if each.exit_code == 0 and each.end == "reported")
    return (successes - Counter(each.subcommand for each in recorded)).total()


def _find_commands(
    transcript: Transcript, paired: Sequence[Call], tool: Tool | None, *, is_text: bool
) -> FoundCommands | None:
    """Return the commands, None if there is nothing to look for. Raises `PatternError` or `TooManyCommands`."""
    if tool and tool.mcp:
        return find_mcp_calls(paired, tool.mcp)
    matcher = make_matcher(tool.binary, tool.command_pattern) if tool else None
    if matcher is None:
        return find_in_tool_calls(paired) if paired else None
    return find_in_text(transcript.text, matcher) if is_text else find_in_shell_calls(paired, matcher)


def _with_failures(counted: Interaction) -> Interaction:
    counts = Counter(command.failure for command in counted.commands)
    return msgspec.structs.replace(counted, failures={each.value: counts[each.value] for each in McpFailure})


def compute_metrics(commands: Sequence[Command], *, source: Source, completed: bool) -> Interaction:
    """Return the metrics of commands from `number_commands`."""
    total = len(commands)
    if not total:
        return Interaction(source=source, completed=completed)
    groups = _by_subcommand(commands)
    unique = len({command.line for command in commands})
    errors, repeats = _sum("errors", groups), total - unique
    known = total - _sum("unknown", groups)
    estimated = sum(command.end == "estimated" for command in commands)
    recorded = source == "recorded"
    return Interaction(
        available=True,
        source=source,
        completed=completed,
        total_commands=total,
        unique_commands=unique,
        error_count=errors,
        error_rate=errors / known if known else None,
        retry_count=repeats,
        retry_rate=repeats / total,
        help_seeking=groups[_HELP].calls,
        first_try_success_rate=_sum("first_tries", groups) / known if known else None,
        iteration_ratio=unique / total,
        retries_after_failure=_sum("retries_after_failure", groups),
        exact_repeats=repeats,
        unknown_exit=total - known,
        known=known,
        estimated=estimated,
        printed_errors=tuple(command.n for command in commands if command.printed_error),
        ends="recorded" if recorded else "estimated" if source == "transcript" else "reported",
        subcommands=tuple(groups[name] for name in sorted(filter(None, groups))),
        commands=tuple(commands),
    )


_HELP = None
_NAMELESS = ""


class _Groups(dict[str | None, Subcommand]):
    """Counts by subcommand, created on first access."""

    def __missing__(self, name: str | None) -> Subcommand:
        return self.setdefault(name, Subcommand(name or _NAMELESS))


def _by_subcommand(commands: Sequence[Command]) -> _Groups:
    """Return the counts by subcommand; help calls under None, nameless commands under an empty name.

    It is one pass because a long log has a hundred thousand commands.
    """
    groups = _Groups()
    for command in commands:
        if command.help:
            counts = groups[_HELP]
            if command.helps:
                asked = groups[command.helps]
                asked.helps += 1
                asked.helps_before += not asked.calls
        else:
            counts = groups[command.subcommand or _NAMELESS]
        counts.calls += 1
        if command.failed:
            counts.errors += 1
        elif command.exit_code is None:
            counts.unknown += 1
        if command.retry_of is not None:
            counts.retries_after_failure += 1
        elif command.exit_code is not None and not command.failed:
            counts.first_tries += 1
    return groups


def _sum(name: str, groups: _Groups) -> int:
    return sum(getattr(own, name) for own in groups.values())


def score_interaction(interaction: Interaction) -> Iterator[Score]:
    """Yield the metrics as scores that inform and never decide; without commands, rates are not measured."""
    for name in COUNTS:
        count = float(getattr(interaction, name))
        yield Score("interaction", name, None if interaction.source == "none" else count)
    for name in RATES:
        yield Score("interaction", name, getattr(interaction, name) if interaction.available else None)
    for kind, count in (interaction.failures or {}).items():
        yield Score("interaction", f"failed_{kind}", float(count))
    yield Score("interaction", "completed", float(interaction.completed), message=interaction.problem)


def result_of(command: Command) -> str:
    """Return how a command ended: `help`, `exit 2` or `exit ?`."""
    if command.help:
        return "help"
    return "exit ?" if command.exit_code is None else f"exit {command.exit_code}"


def without_rates(interaction: Interaction) -> Interaction:
    """Return the metrics without rates of success: where commands are missing, they would be those of a part."""
    return msgspec.structs.replace(interaction, error_rate=None, first_try_success_rate=None)


def describe_unknown(total: int, unknown: int, printed: int) -> str:
    """Return how many ends are unknown and how many of these commands printed an error; empty if all are known."""
    errors = f", {printed:,} of them printed an error" if printed else ""
    return f"{unknown:,} of {total:,} unknown{errors}" if unknown else ""


def describe_unread(unread: int) -> str:
    """Return in a sentence how many shell calls were not read in time; empty if all were."""
    if not unread:
        return ""
    lines = f"{unread:,} shell line{'s' * (unread > 1)}"
    return f"Not read within {READING_SECONDS:.0f} s: {lines}, whose commands aren't counted."


def total_of(interaction: Interaction) -> str:
    """Return the counts in a sentence."""
    counts = f"{interaction.total_commands} commands, {interaction.error_count} failed, {interaction.help_seeking} help calls"
    return f"{counts} (source: {interaction.source})"
