"""Turn recorded executions of the tool into commands: whose each is, and the agent's event of it.

evalhub records them from the kernel, outside the agent's reach.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from evaluators.model import Command, FoundCommand
from evaluators.tool_use.calls import Call
from evaluators.tool_use.launchers import (
    INTERPRETERS,
    LAUNCHERS,
    SHELLS,
    SUBCOMMANDS,
    interpreter_name,
    program_name,
)
from evaluators.tool_use.shell import LaunchedCommand
from evaluators.tool_use.shell_ends import Ending
from evaluators.tool_use.tool_commands import (
    Matcher,
    ended_command,
    match_first,
    number_commands,
    remote_commands,
)

MOST_RECORDED_CALLS = 200_000
"""Calls of a trial that are read."""


class CallingProcess(Struct, frozen=True, omit_defaults=True, gc=False):
    """A process that asked for an execution of the tool, or one of its ancestors. Its arguments are its own claim."""

    pid: int
    argv: tuple[str, ...] = ()
    """The first arguments, cut to a few thousand characters."""
    exe: str = ""
    """The path of its program, as the process sees it."""
    script: str = ""
    """The script that an interpreter or shell runs, or the module of `python -m`; empty for inline code and other programs."""
    written: bool = False
    """Whether the script did not exist in the workspace when the agent began, and lies where the agent can write."""
    marks: dict[str, str] = {}
    """Variables by which agent programs distinguish the model's commands from hooks: `CODEX_TOOL_CALL_ID`, `AI_AGENT`, …"""


class RecordedCall(Struct, frozen=True, omit_defaults=True, gc=False):
    """One execution of the tool."""

    n: int
    """From 1, in the order of starts."""
    how: str
    """How it was recognized: `file`, `copy`, `name`, `argument` or `module`."""
    path: str
    argv: tuple[str, ...]
    start: float
    """Seconds since 1970."""
    cwd: str = ""
    asker: CallingProcess | None = None
    """The process that asked for the execution, as it was before it: the shell with its command line."""
    parents: tuple[CallingProcess, ...] = ()
    """Its ancestors from the nearest to the agent's first process."""
    within: int | None = None
    """The number of the tool's own call that started it."""
    seconds: float | None = None
    exit: int | None = None
    """The exit code; None if a signal ended it or nothing is known."""
    signal: int | None = None
    """The signal that ended it."""

    @property
    def chain(self) -> tuple[CallingProcess, ...]:
        """Return who started it, the nearest first, without copies of a process that forked."""
        processes: list[CallingProcess] = []
        for process in (*([self.asker] if self.asker else []), *self.parents):
            if processes and (process.argv, process.exe) == (processes[-1].argv, processes[-1].exe):
                processes.pop()
            processes.append(process)
        return tuple(processes)


class Caller(StrEnum):
    """Whose call an execution is."""

    MODEL = "model"
    """The model asked for it, through shells and launchers."""
    PROGRAM = "program"
    """Another program made it: indirect."""
    TOOL = "tool"
    """The tool itself made it."""


class Origin(Struct, frozen=True):
    """Whose call an execution is, and by which program it was made if by another."""

    caller: Caller
    program: str = ""


_decoder = msgspec.json.Decoder(RecordedCall)


def read_call_record(content: bytes) -> tuple[RecordedCall, ...]:
    """Return the calls of a record, one JSON object a line, in the order of starts; broken lines are left out."""
    calls: list[RecordedCall] = []
    for line in content.splitlines()[:MOST_RECORDED_CALLS]:
        with suppress(ValueError):
            calls.append(_decoder.decode(line))
    return tuple(sorted(calls, key=lambda each: (each.start, each.n)))


def count_lost_calls(content: bytes) -> int:
    """Return how many executions a record says could not be recorded, in its last line."""
    with suppress(ValueError, AttributeError, TypeError):
        return int(msgspec.json.decode(content.rstrip().rpartition(b"\n")[2]).get("lost", 0))
    return 0


def lost_calls_line(number: int) -> bytes:
    """Return the last line of a record that lost executions."""
    return msgspec.json.encode({"lost": number}) + b"\n"


_AGENTS = frozenset(
    [
        "aider",
        "amp",
        "claude",
        "cline",
        "codex",
        "codex-linux-sandbox",
        "copilot",
        "crush",
        "cursor-agent",
        "gemini",
        "goose",
        "mini",
        "opencode",
        "pi",
        "qwen",
        "swe-agent",
    ]
)
"""Programs of coding agents, which start programs such as git for themselves."""
_AGENT_FOLDER = re.compile(
    r"/(?:@openai/codex|@anthropic-ai/claude-code|opencode-ai|@google/gemini-cli|@qwen-code)[^ ]*/"
)
_CLAUDE_SHELL = re.compile(r"\beval ")
"""In the shells that Claude Code starts for its model, unlike in those for hooks."""
HOOK = "a hook"
_LAUNCHED = frozenset([*LAUNCHERS, *SUBCOMMANDS, "find", "npm", "bwrap", "unshare", "nsenter"])
_NPM_SCRIPTS = frozenset(["run", "run-script", "test", "t", "start", "install", "ci", "rebuild"])


class _Kind(StrEnum):
    PASSING = "passing"
    """A shell with a command line, a launcher, or an interpreter with code that the model wrote."""
    AGENT = "agent"
    OTHER = "other"


_CODEX_MARK = "CODEX_TOOL_CALL_ID"
"""A variable of the model's commands by Codex, which starts hooks by the same shell. Older versions have none."""


def origins_of(record: Sequence[RecordedCall]) -> list[tuple[RecordedCall, Origin]]:
    """Return each call with whose it is: where Codex marks the model's commands, others in a shell are hooks'."""
    is_marked = any(_CODEX_MARK in process.marks for call in record for process in call.chain)
    return [(call, origin_of(call, is_marked=is_marked)) for call in record]


def origin_of(call: RecordedCall, *, is_marked: bool = False) -> Origin:
    """Return whose call an execution is; `is_marked` says that Codex marks the model's commands.

    It is the model's own if only shells, launchers and code that the agent wrote stand between it and the agent's
    program. What a known agent program starts without a shell is that program's.
    """
    if call.within is not None:
        return Origin(Caller.TOOL)
    chain = call.chain
    first = _first_program(chain)
    shell: CallingProcess | None = None
    for at, process in enumerate(chain):
        kind = _kind(process)
        if kind is _Kind.AGENT:
            return _through_agent(process, shell, is_marked=is_marked)
        if at == first:
            break
        if kind is _Kind.OTHER:
            return Origin(Caller.PROGRAM, _name(process))
        shell = process
    return Origin(Caller.MODEL)


def _through_agent(agent: CallingProcess, shell: CallingProcess | None, *, is_marked: bool) -> Origin:
    """Return the origin of what a known agent program started, with the outermost shell or launcher between."""
    if shell is None:
        return Origin(Caller.PROGRAM, _name(agent))
    if _is_claude(agent) and not _CLAUDE_SHELL.search(_command_line(shell.argv)):
        return Origin(Caller.PROGRAM, HOOK)
    if is_marked and "codex" in program_name(_program(agent)) and _CODEX_MARK not in shell.marks:
        return Origin(Caller.PROGRAM, HOOK)
    return Origin(Caller.MODEL)


def _first_program(chain: Sequence[CallingProcess]) -> int:
    """Return the place of the agent's program: the topmost process that is more than a shell or a launcher."""
    for at in range(len(chain) - 1, -1, -1):
        if _kind(chain[at]) is not _Kind.PASSING or chain[at].script:
            return at
    return len(chain) - 1


def _kind(process: CallingProcess) -> _Kind:
    name = _program(process)
    if name in _AGENTS or _AGENT_FOLDER.search(process.script) or _AGENT_FOLDER.search(process.exe):
        return _Kind.AGENT
    if name in SHELLS or interpreter_name(name) in INTERPRETERS:
        runs = program_name(process.script) if process.script else ""
        is_launcher = runs in _LAUNCHED or runs.removesuffix("-cli.js") in _LAUNCHED
        return _Kind.PASSING if not runs or process.written or is_launcher else _Kind.OTHER
    return _Kind.PASSING if name in _LAUNCHED and not _runs_project_script(process) else _Kind.OTHER


def _is_claude(process: CallingProcess) -> bool:
    return _program(process) == "claude" or "claude-code" in f"{process.exe} {process.script}"


def _runs_project_script(process: CallingProcess) -> bool:
    """Return whether npm or the like runs a script of the project's own."""
    name, words = _program(process), [word for word in process.argv[1:] if not word.startswith("-")]
    return name in ("npm", "pnpm", "bun") and bool(words) and words[0] in _NPM_SCRIPTS


def _program(process: CallingProcess) -> str:
    """Return a process's program: by its file, else by the first word of its arguments."""
    named = process.argv[0].removeprefix("-").split(" ")[0] if process.argv else ""
    by_file = program_name(process.exe) if process.exe else ""
    if process.script and _is_known(program_name(process.script)):
        return program_name(process.script)
    if by_file and (_is_known(by_file) or not _is_known(program_name(named))):
        # busybox and the like: the name says what they are.
        return program_name(named) if by_file == "busybox" and named else by_file
    return program_name(named) if named else by_file


def _is_known(name: str) -> bool:
    return name in SHELLS or name in _AGENTS or name in _LAUNCHED or interpreter_name(name) in INTERPRETERS


def _name(process: CallingProcess) -> str:
    """Return what pages call a program: the script that an interpreter runs, else its name."""
    return program_name(process.script) if process.script else _program(process)


def command_texts(call: RecordedCall) -> Iterator[tuple[CallingProcess, str]]:
    """Yield the command lines that lead to a call, the outermost first: those of shells, and of what they became.

    A shell executes its last command in its own place.
    """
    for process in reversed(call.chain):
        text = _command_line(process.argv) if _program(process) in SHELLS else " ".join(process.argv)
        if text:
            yield process, text


def _command_line(argv: Sequence[str]) -> str:
    """Return the command line that a shell was given with `-c`; empty without one."""
    options = [word for word in argv[1:] if word.startswith(("-", "+"))]
    has_line = any("c" in word for word in options if not word.startswith("--"))
    return next((word for word in argv[1:] if not word.startswith(("-", "+"))), "") if has_line else ""


_QUOTES = re.compile(r"[\s'\"\\]+")


class RecordedFound(Struct, frozen=True):
    """The model's own calls as commands, and the calls of other programs."""

    commands: tuple[Command, ...]
    indirect_by: Mapping[str, int] = {}


def find_recorded(record: Sequence[RecordedCall], paired: Sequence[Call], matcher: Matcher) -> RecordedFound:
    """Return the commands of a record, with the events of the agent that asked for them.

    A tool that runs elsewhere, behind `ssh` or `docker`, isn't a process of the trial: those commands are the events'.
    Raises `TooManyCommands` or `SlowPattern`.
    """
    origins = origins_of(record)
    model_calls = [(call, origin) for call, origin in origins if origin.caller is Caller.MODEL]
    events = _events_of(model_calls, paired)
    indirect = Counter(origin.program for _, origin in origins if origin.caller is Caller.PROGRAM)
    commands = list(_commands(model_calls, events, matcher))
    commands += remote_commands(paired, matcher)
    return RecordedFound(number_commands(commands), dict(indirect.most_common()))


def _commands(
    model_calls: Sequence[tuple[RecordedCall, Origin]], events: Mapping[int, int], matcher: Matcher
) -> Iterator[tuple[FoundCommand, int | None]]:
    for call, _ in model_calls:
        match = match_first(_stages(call, matcher), matcher)
        if match is None:
            continue
        # What a shell adds to a signal's number (POSIX, Shell Command Language, 2.8.2).
        code = call.exit if call.signal is None else 128 + call.signal
        command = ended_command(match, Ending(code, failed=code not in (None, 0)))
        yield replace(command, end="recorded", seconds=call.seconds), events.get(call.n)


def _stages(call: RecordedCall, matcher: Matcher) -> Iterator[LaunchedCommand]:
    """Yield the call as typed with its program's name, then as the tool's own words."""
    argv = call.argv or (call.path,)
    words = [program_name(call.path), *argv[1:]]
    if call.how == "argument":
        at = next((n for n, word in enumerate(argv[1:], 1) if not word.startswith("-")), 1)
        yield _stage([program_name(argv[0]), *argv[1:]])
        words = [program_name(argv[at]), *argv[at + 1 :]] if at < len(argv) else words
    elif call.how == "module" and "-m" in argv:
        yield _stage([program_name(argv[0]), *argv[1:]])
        words = list(argv[argv.index("-m") + 1 :])
    yield _stage(words, is_script=True)
    if matcher.binary and len(matcher.binary) == 1:
        # A copy or a link by another name is the tool, too.
        yield _stage([matcher.binary[0], *words[1:]])


def _stage(words: Sequence[str], *, is_script: bool = False) -> LaunchedCommand:
    line = shlex.join(words)
    quoted, at = [], 0
    for n, word in enumerate(words):
        text = shlex.quote(word)
        if n and text != word:
            quoted.append((at, at + len(text)))
        at += len(text) + 1
    return LaunchedCommand(tuple(words), line, line, is_script=is_script, quoted=tuple(quoted))


def _events_of(model_calls: Sequence[tuple[RecordedCall, Origin]], paired: Sequence[Call]) -> dict[int, int]:
    """Return the event of each call by its number: one whose command the text of a shell of the call contains.

    Each event belongs to one shell; of equal commands, the first shell takes the first event.
    """
    waiting = [
        (call.index, _squeeze(call.event.command))
        for call in paired
        if call.event.command and not call.not_run
    ]
    taken: dict[int, int] = {}
    """The event of a shell, by its process."""
    events: dict[int, int] = {}
    for call, _ in model_calls:
        for process, text in command_texts(call):
            if process.pid in taken:
                events[call.n] = taken[process.pid]
                break
            at = _place_of(_squeeze(text), waiting)
            if at is not None:
                events[call.n] = taken[process.pid] = waiting.pop(at)[0]
                break
    return events


def _place_of(text: str, waiting: Sequence[tuple[int, str]]) -> int | None:
    """Return the place of the longest of the next commands that the text contains, the first of equal ones.

    A command that is itself a shell with a script may leave only that script to be seen.
    """
    # Events that are searched for the one of a call; agents run few commands at a time.
    near = waiting[:200]
    lengths = {n: len(command) for n, (_, command) in enumerate(near) if command and command in text}
    if lengths:
        return max(lengths, key=lambda n: (lengths[n], -n))
    return next((n for n, (_, command) in enumerate(near) if text and text in command), None)


def _squeeze(text: str) -> str:
    """Return a text without blanks, quotes and backslashes, which agents add when they wrap a command."""
    return _QUOTES.sub("", text)
