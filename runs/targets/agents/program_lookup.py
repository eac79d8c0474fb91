"""Find a command template's program on the worker and in its sandbox, and say how to read its output."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from runs.errors import ProviderError
from runs.sandbox.process import ProcessResult
from runs.sandbox.sandbox import Containment
from runs.sandbox.target_roots import PathRefused, Use
from runs.targets.agents.command_template import quote
from runs.targets.providers.base import Availability
from runs.targets.providers.healthcheck import run_contained

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


SECONDS = 10.0
LONGEST_OUTPUT = 2000
"""Characters; an agent that prints more did start."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPERATOR = re.compile(r"[;&|<>]")
_OPEN = re.compile(r"[{}$`*?~;&|<>()]")
"""Characters whose meaning is known only when the shell runs."""
_MISSING = ("not found", "ermission denied", "No such file", "can't open", "annot open", "Cannot find module")


def literal_words(template: str) -> tuple[str, ...]:
    """Return the words of a command up to the first operator of the shell, without assignments.

    An unknown first word or an unreadable template gives no words.
    """
    try:
        words = shlex.split(template)
    except ValueError:
        return ()
    while words and _ASSIGNMENT.match(words[0]):
        del words[0]
    if not words or _OPEN.search(words[0]):
        return ()
    first_command = takewhile(lambda word: not _OPERATOR.search(word), words)
    return tuple(word for word in first_command if not _OPEN.search(word))


def look_up(
    template: str,
    containment: Containment,
    *,
    cwd: str | None,
    base: str,
    env: Mapping[str, str],
    readable: Sequence[Path] = (),
) -> Availability:
    """Return whether a command's program, and files that it names by absolute paths, exist inside the sandbox."""
    words = literal_words(template)
    # Without a base, a relative folder is one of the trial's.
    cwd = cwd if cwd and (base or Path(cwd).is_absolute()) else None
    if not words or ("/" in words[0] and not words[0].startswith("/") and not cwd):
        # A path in the workspace, which differs by trial.
        return Availability(True, "The first trial starts the program.", tried=False)
    files = [word for word in words[1:] if word.startswith("/") and Path(word).exists()]
    tests = "".join(f"; [ -e {quote(file)} ] || echo {quote(file)}" for file in files)
    try:
        result = run_contained(
            f"command -v {quote(words[0])} || echo{tests}", containment, cwd, base, env, SECONDS, readable
        )
    except ProviderError as error:
        return Availability(False, str(error))
    located, *missing = result.stdout.decode("utf-8", "replace").split("\n")[:-1] or [""]
    if not located:
        return Availability(
            False,
            f"There is no program '{words[0]}' inside the sandbox. {advise_on_program(words[0], containment)}",
        )
    if missing:
        return Availability(False, advise_on_program(missing[0], containment))
    if "/" not in located:
        return Availability(True, "The command starts in the shell; the first trial runs it.", tried=False)
    return Availability(True)


def advise_on_program(word: str, containment: Containment) -> str:
    """Return what to do about a program or file that is missing inside the sandbox, as sentences."""
    outside = word if word.startswith("/") else shutil.which(word, path=containment.path)
    if outside and Path(outside).exists():
        folder = installation_of(Path(outside).resolve())
        remedy = (
            f"Add {folder} to the target's `read_folders`, or set"
            if _may_show(folder, containment)
            else "Set"
        )
        return (
            f"The file {outside} exists on the worker, but not inside the sandbox. "
            f"{remedy} EVALHUB_SANDBOX_READ={folder} on the worker, or move it to a folder on PATH."
        )
    return "Install it on the worker, or correct `command_template`."


@dataclass(frozen=True)
class HiddenFiles:
    """Files of a command that exist on this machine, but not inside its sandbox."""

    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    """What the target has to show its commands, so that they are seen; empty if it may not."""
    refusal: str = ""
    """Why it may not, as a sentence."""


def hidden_files(template: str, containment: Containment, shown: Iterable[Path]) -> HiddenFiles:
    """Return what a sandbox hides of a command's program and of files that it names by absolute paths.

    Nothing is run. `shown` are the folders that the target shows its commands already.
    """
    common = containment.visible_folders()
    if common is None:
        return HiddenFiles()
    visible = [*common, *shown]
    words = literal_words(template)
    files = [Path(word) for word in words[1:] if word.startswith("/")]
    if words and (program := shutil.which(words[0], path=containment.path)):
        files.insert(0, Path(program))
    unseen = {
        file: [
            path
            for path in (file, file.resolve())
            if not any(path.is_relative_to(folder) for folder in visible)
        ]
        for file in files
        if file.is_absolute() and file.exists()
    }
    hidden = [file for file, paths in unseen.items() if paths]
    folders = {installation_of(path) for paths in unseen.values() for path in paths}
    outermost = sorted(each for each in folders if folders.isdisjoint(each.parents))
    try:
        for folder in outermost:
            containment.targets.place(str(folder), Use.SHOW)
            if folder.resolve() != folder:
                raise PathRefused(f"'{folder}' is behind a link. Name {hidden[0].resolve()} in the command.")
    except PathRefused as error:
        return HiddenFiles(tuple(hidden), refusal=str(error))
    return HiddenFiles(tuple(hidden), tuple(outermost))


def installation_of(path: Path) -> Path:
    """Return the folder to show for a program: its own, or that above a `bin`."""
    return path.parent.parent if path.parent.name == "bin" else path.parent


def _may_show(folder: Path, containment: Containment) -> bool:
    try:
        containment.targets.place(str(folder), Use.SHOW)
    except PathRefused:
        return False
    return True


def missing_word(result: ProcessResult, template: str) -> str:
    """Return the program or file of a command that the shell or its interpreter could not find; empty if none."""
    if result.exit_code == 0 or len(result.output) > LONGEST_OUTPUT:
        return ""
    output = result.output.decode("utf-8", "replace")
    if not any(phrase in output for phrase in _MISSING):
        return ""
    program, *others = literal_words(template) or ("",)
    if program and program in output and result.exit_code in (126, 127):
        return program
    # An argument counts only as a file by its form, because messages also repeat other words.
    return next((word for word in others if ("/" in word or "." in word) and _names(output, word)), "")


def _names(output: str, word: str) -> bool:
    """Return whether a message about a missing file names a word."""
    lines = (line for line in output.splitlines() if any(phrase in line for phrase in _MISSING))
    return any(re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", line) for line in lines)
