"""Find, run and log the program of a coding agent, with the options that all share, and report its failures."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Literal

from evalhub.lib.limits import LARGEST_MESSAGE, LONGEST_ERROR
from evaluators.json_values import indent_json
from evaluators.model import Json
from evaluators.redaction import mask_values
from evaluators.transcripts.stream import VERSION, newer_version
from runs.errors import ProviderError
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.safe_walk import temporary_folders
from runs.sandbox.sandbox import Containment, Sandbox
from runs.sandbox.streams import Capture, Sink
from runs.sandbox.target_roots import Use
from runs.targets.agents.session_end import Broken
from runs.targets.providers.base import Availability, Invocation
from runs.targets.providers.options import RETRY_FIELDS, Options, ResolvedTarget
from runs.targets.providers.recent_lines import SplitLines
from scenarios.spec import ScenarioSpec

LogFormat = Literal["summary", "json"]


class AgentLog:
    """Lines of both streams with their time, values of variables masked.

    Kept in memory, and also written to a new file if the target has a log folder.
    """

    def __init__(
        self,
        heading: dict[str, str],
        *,
        file: int | None = None,
        path: str = "",
        format: LogFormat = "summary",
        secrets: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        """The file's path, for display; empty without one."""
        self._format = format
        self._secrets = secrets
        self._clock = clock
        self._began = clock()
        self._split = {"stdout": SplitLines(), "stderr": SplitLines()}
        self._kept = Capture(LARGEST_MESSAGE)
        self._file = None if file is None else os.fdopen(file, "wb", buffering=0)
        for name, value in heading.items():
            self._add(f"# {name}: {value}\n")

    @property
    def content(self) -> bytes:
        """Return the log so far."""
        return self._kept.content()

    def __enter__(self) -> AgentLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        """Write complete lines."""
        for line in self._split[stream].take(chunk):
            self._write(stream, line)

    def close(self) -> None:
        """Write the rest and close the file."""
        for stream, split in self._split.items():
            self._write(stream, split.rest())
        if self._file is not None:
            self._file.close()

    def _write(self, stream: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        seconds = int(self._clock() - self._began)
        shown = mask_values(_event_lines(text, self._format), self._secrets)
        self._add(f"[+{seconds // 60:02}:{seconds % 60:02}] [{stream}] {shown}\n")

    def _add(self, text: str) -> None:
        line = text.encode("utf-8", "replace")
        self._kept.add(line)
        if self._file is not None:
            self._file.write(line)


def log_name(target: str, invocation: Invocation) -> str:
    """Return a unique file name for one trial's log."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-%f")
    words = (target, invocation.spec.key, f"trial-{invocation.trial}", f"attempt-{invocation.attempt}")
    name = "_".join(
        "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in word) for word in words
    )
    return f"{moment}_{name[:150]}.log"


def _event_lines(text: str, format: LogFormat) -> str:
    try:
        value = json.loads(text)
        if format == "json":
            # An event may become so many times as long by its indentation.
            return indent_json(value, most=1000 + 10 * len(text))
    except (ValueError, RecursionError):
        return text
    return _summary(value) if isinstance(value, dict) else text


def _summary(value: dict[str, Json]) -> str:
    """Return an event's kind with the start of its text."""
    item = value.get("item", value.get("part"))
    holder = item if isinstance(item, dict) else value
    kind = f"{value.get('type', 'event')} {holder.get('type', '') if holder is item else ''}".strip()
    texts = (holder.get(name) for name in ("text", "command", "message", "tool", "error", "result"))
    text = next((text for text in texts if isinstance(text, str) and text), "")
    return f"{kind}: {' '.join(text.split())[:LONGEST_ERROR]}" if text else kind


_CREDENTIAL = re.compile(r"(KEY|TOKEN|AUTH|CREDENTIALS?|_USE_[A-Z]+)(_|$)")


@dataclass(frozen=True)
class AgentFacts:
    """What evalhub knows of an agent's program."""

    package: str
    """Its package in npm."""
    oldest: tuple[int, int]
    """The first version whose stream evalhub reads."""
    newest_major: int
    """The last major version whose stream is known."""
    variable: str = ""
    """The variable of its key; empty if it works without one."""

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"npm install -g {self.package}"

    def too_old(self, version: str) -> bool:
        """Return whether its stream can't be read; an unreadable version is not too old."""
        match = VERSION.search(version)
        return match is not None and (int(match[1]), int(match[2])) < self.oldest

    def note(self, title: str, version: str) -> str:
        """Return a note on a major version that is not known yet; empty for a known one."""
        return newer_version(title, version, self.newest_major)


class AgentOptions(Options):
    """How a coding agent is started, and which model service it uses."""

    unused_fields: ClassVar[frozenset[str]] = RETRY_FIELDS
    secret_fields: ClassVar[frozenset[str]] = frozenset(("api_key",))
    path_fields: ClassVar[Mapping[str, Use]] = {"executable": Use.RUN}

    api_key: str | None = None

    @property
    def names_credentials(self) -> bool:
        """Whether the agent can sign in: by a key, by a variable for one, or at an address that needs none."""
        return bool(self.api_key or self.base_url) or any(map(_CREDENTIAL.search, self.env))

    def sets(self, words: Collection[str]) -> bool:
        """Return whether one of its own arguments is one of these or sets one, as in `--sandbox=MODE`."""
        return any(arg in words or arg.partition("=")[0] in words for arg in self.args)


VERSION_SECONDS = 30.0
_VERSIONS: dict[tuple[str, str, int, int], str] = {}
"""Versions by program, target and the file's state: an update or another sandbox asks again."""


@dataclass(frozen=True)
class AgentProgram:
    """The agent program of one target."""

    title: str
    executable: str
    target: ResolvedTarget
    containment: Containment
    facts: AgentFacts | None = None
    """None for a program that isn't a coding agent of ours, such as an editor."""

    def check(self) -> Availability:
        """Return whether the program exists, starts, is recent enough and can sign in, with its version."""
        if problem := self.containment.agent_problem:
            return Availability(False, problem)
        program = self._find_program()
        if program is None:
            return Availability(False, self._missing())
        try:
            version = self._version(program)
        except ProviderError as error:
            return Availability(False, str(error)) if self.facts else Availability(True)
        problem = self._why_unsupported(version) or self._signed_out()
        return Availability(not problem, problem, version)

    def version(self) -> str:
        """Return the program's version as it is now; empty if it can't be found out."""
        program = self._find_program()
        try:
            return self._version(program) if program else ""
        except ProviderError:
            return ""

    def newer(self, version: str) -> str:
        """Return a note if evalhub doesn't know the output of this major version yet; empty otherwise."""
        return self.facts.note(self.title, version) if self.facts else ""

    def sandbox(self, invocation: Invocation, cwd: Path, *, writable: Sequence[Path] = ()) -> Sandbox:
        """Return a trial's sandbox, which shows the program and the files to read."""
        executable = self._find_program()
        program = [executable, _package(executable.resolve())] if executable else []
        elsewhere = not cwd.is_relative_to(invocation.workspace)
        return self.containment.around(
            invocation.workspace,
            invocation.scratch,
            profile=AGENT,
            readable=(
                *invocation.files,
                *invocation.guideline_files,
                *program,
                *(invocation.mcp.readable if invocation.mcp else ()),
            ),
            writable=writable,
            working=cwd if elsewhere else None,
        )

    def run(
        self,
        arguments: Sequence[str],
        invocation: Invocation,
        sandbox: Sandbox,
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes | None = None,
        log: AgentLog | None = None,
        sinks: Sequence[Sink] = (),
        lingers: Callable[[], bool] | None = None,
    ) -> ProcessResult:
        """Run the program; send its output to the log and sinks. Raises `ProviderError` (kind `start`)."""
        with log or nullcontext():
            program = self._find_program()
            if program is None:
                raise ProviderError(self._missing())
            return run_process(
                [*(invocation.mcp.around if invocation.mcp else ()), str(program), *arguments],
                cwd=cwd,
                env={**env, **invocation.env},
                timeout_seconds=self.target.options.time_limit(invocation.timeout_seconds),
                stdin=stdin,
                sinks=[*([log] if log else []), *sinks],
                cancelled=invocation.cancelled,
                limits=sandbox.limits,
                sandbox=sandbox,
                grace_seconds=2.0,
                record=invocation.record,
                # What an agent starts can't add events to its stream.
                stdout_socket=self.facts is not None,
                lingers=lingers,
            )

    def log(
        self, invocation: Invocation, folder: str | None = None, format: LogFormat | None = None
    ) -> AgentLog:
        """Return a trial's log, with a file if the target has a log folder.

        Raises `ProviderError` (kind `configuration`) if the file can't be created.
        """
        heading = {
            f"{self.title} log of target": self.target.name,
            "scenario": invocation.spec.key,
            "attempt": str(invocation.attempt),
        }
        file, path = self._log_file(folder, invocation) if folder else (None, "")
        return AgentLog(
            heading, file=file, path=path, format=format or "summary", secrets=self.target.secrets
        )

    def _log_file(self, folder: str, invocation: Invocation) -> tuple[int, str]:
        place = self.containment.targets.place(folder, Use.WRITE, base=self.target.base_folder)
        name = log_name(self.target.name, invocation)
        try:
            return place.create(name), str(place.path / name)
        except OSError as error:
            raise ProviderError(
                f"{self.about} can't log to {place.path}: {error.strerror}. Correct `log_dir`.",
                kind="configuration",
            ) from error

    def refuse_failure(
        self, result: ProcessResult, broken: Broken | None, invocation: Invocation, log: AgentLog
    ) -> None:
        """Raise `ProviderError` if the session was cut off or failed, and no gates check the workspace."""
        if invocation.in_workspace or result.cancelled:
            return
        if broken and broken.kind == "endpoint":
            raise ProviderError(f"{broken.sentence}{_where(log)}", kind=broken.kind)
        if result.timed_out:
            raise ProviderError(
                f"{self.about} timed out after {self.target.options.time_limit(invocation.timeout_seconds):g} s{_where(log)}. "
                "Raise `timeout_seconds`, or find out what it waits for.",
                kind="timeout",
            )
        if result.exit_code != 0:
            raise self.failed(f"ended with exit code {result.exit_code}", result, log)

    def failed(self, how: str, result: ProcessResult, log: AgentLog) -> ProviderError:
        """Return a failed program's error, with its output and the path of its log."""
        streams = {"stderr": result.stderr, "stdout": result.stdout}
        ends = {name: stream.decode("utf-8", "replace").strip()[-500:] for name, stream in streams.items()}
        output = "; ".join(f"{name}: {text.rstrip('.')}" for name, text in ends.items() if text.rstrip("."))
        sentence = f"{self.about} {how}: {output or 'no output'}{_where(log)}."
        return ProviderError(f"{sentence} Run it by hand to see why.", kind="command")

    @property
    def about(self) -> str:
        """The program as the subject of a sentence."""
        return f"{self.title} of the target '{self.target.name}'"

    def _find_program(self) -> Path | None:
        """Return the program's path, searching PATH for a bare name."""
        if os.sep in self.executable:
            # Keep the name, not the link's target: some programs depend on the name they were started by.
            path = Path(self.target.base_folder, Path(self.executable).expanduser()).absolute()
            self.containment.targets.place(self.executable, Use.RUN, base=self.target.base_folder)
            return path if os.access(path, os.X_OK) and path.is_file() else None
        program = shutil.which(self.executable, path=self.containment.path)
        return Path(program).absolute() if program else None

    def _missing(self) -> str:
        install = f" with `{self.facts.install}`" if self.facts else ""
        return (
            f"{self.about} cannot start: there is no program '{self.executable}' on the worker. "
            f"Install it there{install}, or set `executable` to its path."
        )

    def _why_unsupported(self, version: str) -> str:
        if not self.facts or not self.facts.too_old(version):
            return ""
        oldest = ".".join(map(str, self.facts.oldest))
        return (
            f"{self.about} is too old: '{version}', and evalhub reads the output of {oldest} and later. "
            f"Update it on the worker with `{self.facts.install}@latest`."
        )

    def _signed_out(self) -> str:
        options = self.target.options
        if not (self.facts and self.facts.variable and isinstance(options, AgentOptions)):
            return ""
        if options.names_credentials or options.args:
            return ""
        variable = self.facts.variable
        return (
            f"{self.about} is not signed in: agents don't see the worker's logins. Set {variable} on the worker, "
            f"allow it in EVALHUB_ENV_ALLOW, and write `api_key: ${{{{ {variable} }}}}` in the target."
        )

    def _version(self, program: Path) -> str:
        """Return what `--version` says. Raises `ProviderError` if it fails."""
        state = program.stat()
        key = (str(program.resolve()), self.target.name, state.st_mtime_ns, state.st_size)
        if key not in _VERSIONS:
            _VERSIONS[key] = self._asked_version()
        return _VERSIONS[key]

    def _asked_version(self) -> str:
        with temporary_folders("evalhub-version-") as (workspace, scratch):
            asking = Invocation(
                "", ScenarioSpec(key="version", prompt=""), workspace, scratch, VERSION_SECONDS
            )
            sandbox = self.sandbox(asking, workspace)
            result = self.run(["--version"], asking, sandbox, cwd=workspace, env=sandbox.own_home())
        if result.exit_code != 0:
            raise ProviderError(
                f"{self.about} does not start: `{self.executable} --version` ended with exit code "
                f"{result.exit_code}: {result.summary}. Run it by hand on the worker, or install it again."
            )
        lines = result.stdout.decode("utf-8", "replace").split("\n")
        return lines[0].strip()[:100]


def _package(program: Path) -> Path:
    """Return what a program needs beside itself: npm's packages start a binary of a sibling package."""
    folders = [folder for folder in program.parents if folder.name == "node_modules"]
    return folders[-1] if folders else program


def _where(log: AgentLog) -> str:
    return f" (its log: {log.path})" if log.path else ""
