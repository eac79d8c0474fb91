"""Find, run and log the program of a coding agent, and report its failures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from runs.errors import ProviderError
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.safe_walk import temporary_folders
from runs.sandbox.sandbox import Containment, Sandbox
from runs.sandbox.streams import Sink
from runs.sandbox.target_roots import Use
from runs.targets.agents.agent_log import AgentLog, LogFormat, log_name
from runs.targets.agents.agent_options import AgentFacts, AgentOptions
from runs.targets.agents.session_end import Broken
from runs.targets.providers.base import Availability, Invocation
from runs.targets.providers.options import ResolvedTarget
from scenarios.spec import ScenarioSpec

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
