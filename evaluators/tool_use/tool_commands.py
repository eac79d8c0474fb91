"""Find the commands of the tool under test in shell calls (llm-tool-test evaluation, Layer 1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from time import monotonic

import msgspec
from msgspec import Struct

from evalhub.lib.limits import LONGEST_LINE
from evaluators.model import Command, FoundCommand, Json
from evaluators.patterns import compile_pattern, leading_word, required_literal
from evaluators.tool_use.calls import Call
from evaluators.tool_use.error_text import has_error
from evaluators.tool_use.launchers import SCRIPT_SUFFIX, interpreter_name
from evaluators.tool_use.powershell import POWERSHELLS
from evaluators.tool_use.shell import Definitions, LaunchedCommand, ShellLine, read_line, words_of
from evaluators.tool_use.shell_ends import Ending, ends_of

HELP = "help"
"""The key of help calls."""

MOST_COMMANDS = 50_000
"""Commands of a transcript that are counted; an agent can write millions in one line."""

READING_SECONDS = 10.0
"""The time in which the lines of one session are read; the rest are counted as unread."""

TEXT_PROGRAMS = frozenset(
    [
        "[",
        "alias",
        "awk",
        "basename",
        "bat",
        "cat",
        "cd",
        "chmod",
        "chown",
        "command",
        "cp",
        "cut",
        "declare",
        "diff",
        "dirname",
        "echo",
        "egrep",
        "export",
        "fd",
        "fgrep",
        "file",
        "find",
        "fold",
        "grep",
        "gsed",
        "hash",
        "head",
        "hexdump",
        "install",
        "less",
        "ln",
        "local",
        "ls",
        "man",
        "md5sum",
        "mkdir",
        "more",
        "mv",
        "nl",
        "od",
        "open",
        "pip",
        "pip3",
        "printf",
        "pushd",
        "read",
        "readlink",
        "realpath",
        "rg",
        "rm",
        "rmdir",
        "sed",
        "sha256sum",
        "sort",
        "source",
        "stat",
        "strings",
        "tail",
        "tee",
        "test",
        "touch",
        "tr",
        "tree",
        "type",
        "typeset",
        "uniq",
        "unset",
        "vi",
        "vim",
        "wc",
        "whatis",
        "whereis",
        "which",
        "xxd",
    ]
)
"""Programs whose arguments are texts and files: a tool's name among them isn't a call."""


class FoundCommands(Struct, frozen=True):
    """The commands of a transcript, and what was left out."""

    commands: tuple[Command, ...]
    not_run: int = 0
    """Calls of the tool that never ran."""
    mentioned: int = 0
    """Shell calls that name the tool and have no command of it."""
    unrecorded: int = 0
    """Successful calls of an MCP server that its proxy didn't see."""
    unread: int = 0
    """Shell calls that may have commands of the tool and were not read in time."""


class Matcher(Struct, frozen=True, cache_hash=True):
    """Recognizes a tool's commands by a pattern, else by the program's name."""

    binary: tuple[str, ...] = ()
    pattern: str = ""

    def literal(self) -> str:
        """Return a text that every matching line contains; empty if there is none."""
        return required_literal(self.pattern) if self.pattern else self.binary[0]

    @property
    def name(self) -> str:
        """Return the name by which lines mention the tool; empty if a pattern has no such word."""
        if self.pattern:
            return leading_word(self.pattern)
        words = [word for word in self.binary if not word.startswith("-")]
        return words[-1].rsplit("/", 1)[-1] if words else self.binary[0]


class TooManyCommands(Exception):
    """The transcript has more commands than are counted, or may have; the message says why."""


def make_matcher(binary: str, pattern: str) -> Matcher | None:
    """Return a matcher for the tool's commands, None without binary and pattern. Raises `BadPattern`."""
    if pattern.strip():
        compile_pattern(pattern)
        return Matcher(pattern=pattern)
    words = words_of(binary)
    return Matcher(binary=words) if words else None


def number_commands(found_commands: Iterable[tuple[FoundCommand, int | None]]) -> tuple[Command, ...]:
    """Number the commands and mark retries: commands after a failed one of the same subcommand.

    Without a subcommand, the command line is used instead. A known success clears the failure.
    Raises `TooManyCommands`.
    """
    failed: dict[str, int] = {}
    commands = []
    for n, (seen, event) in enumerate(found_commands):
        if n == MOST_COMMANDS:
            raise TooManyCommands(
                f"The transcript has more than {MOST_COMMANDS:,} commands. They can't be counted."
            )
        key = HELP if seen.help else seen.subcommand or seen.line
        if seen.failure == "unknown_tool":
            # No attempt at the tool that an agent spells alike.
            key = f"unknown {key}"
        retry_of = failed.get(key)
        is_known = seen.failed or seen.exit_code is not None
        if seen.failed:
            failed[key] = n
        elif is_known and retry_of is not None:
            del failed[key]
        commands.append(
            Command(
                **msgspec.structs.asdict(seen)
                | {
                    "end": seen.end if is_known else "unknown",
                    "printed_error": seen.printed_error and not is_known,
                },
                n=n,
                retry_of=retry_of,
                event=event,
            )
        )
    return tuple(commands)


def find_in_shell_calls(
    paired: Sequence[Call], matcher: Matcher, seconds: float = READING_SECONDS
) -> FoundCommands:
    """Return the tool's commands in shell calls that can be read in this time. Raises `TooManyCommands`."""
    reader = _ShellCalls(matcher, seconds=seconds)
    commands = number_commands(reader.commands(paired))
    return FoundCommands(commands, reader.not_run, reader.mentioned, unread=reader.unread)


REMOTE = frozenset(["ssh", "docker", "podman", "docker-compose", "kubectl", "oc"])
"""Launchers whose command runs outside the trial's processes."""


def remote_commands(paired: Sequence[Call], matcher: Matcher) -> Iterator[tuple[FoundCommand, int | None]]:
    """Yield the tool's commands that run elsewhere, which no recorder of this machine sees."""
    yield from _ShellCalls(matcher, only_remote=True).commands(paired)


_ONE_SHELL = frozenset(["execute_bash"])
"""Tools, here that of OpenHands, whose calls share one shell; those of others get a shell each."""


class _ShellCalls:
    """Reads the shell calls of a session in order."""

    def __init__(
        self, matcher: Matcher, *, only_remote: bool = False, seconds: float = READING_SECONDS
    ) -> None:
        self.matcher = matcher
        self.only_remote = only_remote
        self.seconds = seconds
        """The time that is left for reading."""
        self.definitions = Definitions()
        """What earlier calls of the same shell defined."""
        self.not_run = self.mentioned = self.unread = 0
        self.mention = mention_pattern(matcher)

    def commands(self, paired: Sequence[Call]) -> Iterator[tuple[FoundCommand, int | None]]:
        for call in paired:
            if call.event.command is None:
                continue
            line = searchable_part(call.event.command, self.matcher)
            if self.seconds <= 0:
                self.unread += self.matcher.literal() in line
                continue
            began = monotonic()
            found = self.read(call, line)
            self.seconds -= monotonic() - began
            yield from ((command, call.index) for command in found)

    def read(self, call: Call, line: str) -> list[FoundCommand]:
        name = (call.event.name or "").lower()
        shared = self.definitions if name in _ONE_SHELL else Definitions()
        matched_line = match_line(line, self.matcher, shared, is_powershell=name in POWERSHELLS)
        if call.not_run:
            self.not_run += bool(matched_line.matches)
            return []
        if name in _ONE_SHELL:
            # Only those that lead to the tool, for the session's later lines.
            found, wanted = matched_line.line.definitions, self.matcher.name or self.matcher.literal()
            self.definitions = Definitions(
                tuple(each for each in found.values if any(wanted in word for word in each[1])),
                tuple(each for each in found.functions if wanted in repr(each[1])),
            )
        if self.only_remote:
            segments, matches = matched_line.line.segments, matched_line.matches
            remote = {n: each for n, each in matches.items() if REMOTE.intersection(segments[n].launchers)}
            matched_line = MatchedLine(matched_line.line, remote)
        if not matched_line.matches and self.mention and self.mention.search(line):
            self.mentioned += 1
        return list(find_commands_of_line(matched_line, self.matcher, call.exit_code, output_of(call)))


def output_of(call: Call) -> str | None:
    """Return what a call printed, None if that is unknown."""
    output: Json = call.result.output if call.result else None
    if isinstance(output, dict):
        parts = [output.get(name) for name in ("stdout", "stderr", "output")]
        output = "\n".join(part for part in parts if isinstance(part, str) and part) or None
    if isinstance(output, list):
        parts = [part.get("text") for part in output if isinstance(part, dict)]
        output = "\n".join(part for part in parts if isinstance(part, str)) or None
    if isinstance(output, str):
        return output
    return call.result.text if call.result else None


def mention_pattern(matcher: Matcher) -> re.Pattern[str] | None:
    """Return what finds the tool's name as a word; None for a pattern without a certain word."""
    name = matcher.name
    return re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])") if name else None


def find_in_tool_calls(paired: Sequence[Call]) -> FoundCommands:
    """Return every tool call as a command; the tool is the subcommand, name and input are the line."""
    ran = [call for call in paired if not call.not_run]
    return FoundCommands(number_commands(map(_of_tool_call, ran)), len(paired) - len(ran))


def _of_tool_call(call: Call) -> tuple[FoundCommand, int]:
    name = call.event.name or "tool"
    arguments = call.event.input if call.event.input is not None else call.event.command
    text = "" if arguments is None else " " + msgspec.json.encode(arguments, order="deterministic").decode()
    code = call.exit_code
    return FoundCommand(name + text, name, code, failed=code not in (None, 0)), call.index


def searchable_part(line: str, matcher: Matcher) -> str:
    """Return the part of a line that can have commands. Raises `TooManyCommands` if it is too long to be searched."""
    rest = line[LONGEST_LINE:]
    if rest and matcher.literal() in rest:
        raise TooManyCommands(
            f"A command line has more than {LONGEST_LINE:,} characters. Its commands can't be counted."
        )
    return line[:LONGEST_LINE]


class MatchedLine(Struct, frozen=True):
    """The tool's segments of a line, independent of its exit code."""

    line: ShellLine
    matches: dict[int, Matched]
    """By index of the segment."""

    @property
    def is_help(self) -> bool:
        """Return whether the last of them asks for help."""
        last = self.matches[max(self.matches)] if self.matches else None
        return last is not None and _asks_help(last)


class Matched(Struct, frozen=True):
    """A command of the tool."""

    stage: LaunchedCommand
    sub: str | None
    start: int = 0
    """Where the pattern matched in the stage's text."""


def match_line(
    line: str,
    matcher: Matcher,
    definitions: Definitions = Definitions(),  # noqa: B008 immutable
    *,
    is_powershell: bool = False,
) -> MatchedLine:
    """Return the tool's commands in a shell line. Raises `SlowPattern`."""
    # The longest line in a cache, in characters, to limit memory.
    if len(line) <= 2_000 and not definitions.functions:
        return _cached_match(line, matcher, definitions, is_powershell=is_powershell)
    return _match(line, matcher, definitions, is_powershell=is_powershell)


def _match(line: str, matcher: Matcher, definitions: Definitions, *, is_powershell: bool) -> MatchedLine:
    shell_line = read_line(line, definitions, is_powershell=is_powershell)
    matches = {
        n: match
        for n, part in enumerate(shell_line.segments)
        if (match := match_first(reversed(part.stages), matcher)) is not None
    }
    return MatchedLine(shell_line, matches)


_cached_match = lru_cache(maxsize=16_384)(_match)


def find_commands_of_line(
    matched_line: MatchedLine, matcher: Matcher, code: int | None, output: str | None
) -> Iterator[FoundCommand]:
    """Yield the tool's commands of a line with this exit code and output, without those that did not run."""
    if not matched_line.matches:
        return
    endings = {
        n: end for n, end in ends_of(matched_line.line, matched_line.matches, code, output).items() if end.ran
    }
    unclear = [n for n, end in endings.items() if end.failed or not end.known]
    for n, ending in endings.items():
        command = ended_command(matched_line.matches[n], ending)
        # Messages of several commands can't be told apart.
        is_alone = unclear == [n] and not ending.known and not matched_line.line.segments[n].hides_errors
        if is_alone and output and has_error(output, after_help=command.help, program=matcher.name):
            command = msgspec.structs.replace(command, printed_error=not command.help)
        yield command


def match_first(stages: Iterable[LaunchedCommand], matcher: Matcher) -> Matched | None:
    """Return how the first command that is the tool's is it, None if none is. Raises `SlowPattern`."""
    return next((match for stage in stages if (match := _match_stage(stage, matcher))), None)


def _match_stage(stage: LaunchedCommand, matcher: Matcher) -> Matched | None:
    if matcher.pattern:
        return _match_pattern(stage, matcher.pattern)
    return _match_binary(stage, matcher.binary)


def _match_binary(stage: LaunchedCommand, binary: tuple[str, ...]) -> Matched | None:
    length, words = len(binary), stage.words
    is_tool = len(words) >= length and all(map(_is_same, words, binary))
    # A script's name may have a suffix that the tool's name lacks.
    is_tool |= stage.is_script and length == 1 and SCRIPT_SUFFIX.sub("", words[0]) == binary[0]
    if not is_tool:
        return None
    return Matched(stage, words[length] if len(words) > length else None)


def _is_same(word: str, wanted: str) -> bool:
    if word == wanted:
        return True
    if "/" in word or "/" in wanted:
        return word.rsplit("/", 1)[-1] == wanted.rsplit("/", 1)[-1]
    return interpreter_name(word) == wanted


def _match_pattern(stage: LaunchedCommand, text: str) -> Matched | None:
    pattern = compile_pattern(text)
    match = pattern.search(stage.text)
    if match is not None and not _may_begin(stage, match.start):
        masked = _mask_quotes(stage)
        match = pattern.search(masked) if masked != stage.text else None
        if match is not None and not _may_begin(stage, match.start):
            match = None
    if match is None and stage.path:
        # The pattern may match the program's path, which the normalized line lacks.
        match = pattern.search(stage.path + stage.text[len(stage.words[0]) :])
        if match is not None and match.start > len(stage.path):
            match = None
    return None if match is None else Matched(stage, match.sub, match.start)


def _may_begin(stage: LaunchedCommand, start: int) -> bool:
    """Return whether a command may begin here: not in quoted text, nor among the arguments of `echo` or `grep`."""
    if any(begin <= start < end for begin, end in stage.quoted):
        return False
    return start < max(1, len(stage.words[0])) or stage.words[0] not in TEXT_PROGRAMS


def _mask_quotes(stage: LaunchedCommand) -> str:
    """Return the text with quoted arguments filled, so that a pattern finds what is behind them."""
    text = stage.text
    for begin, end in stage.quoted:
        text = f"{text[:begin]}{'_' * (end - begin)}{text[end:]}"
    return text


def ended_command(match: Matched, ending: Ending) -> FoundCommand:
    """Return a command that ended like this."""
    is_help = _asks_help(match)
    return FoundCommand(
        match.stage.line,
        HELP if is_help else match.sub,
        ending.code,
        failed=ending.failed and not is_help,
        help=is_help,
        helps=_asked_about(match.sub, match.stage.words) if is_help else None,
        at_least=ending.at_least,
    )


def _asks_help(match: Matched) -> bool:
    return match.sub in (HELP, "--help") or "--help" in match.stage.words


def _asked_about(sub: str | None, words: tuple[str, ...]) -> str | None:
    """Return the subcommand of `tool sub --help` or `tool help sub`; None for the tool's own help."""
    if sub != HELP:
        return None if sub == "--help" else sub
    behind = words[words.index(HELP) + 1 :] if HELP in words else ()
    return next((word for word in behind if not word.startswith("-")), None)
