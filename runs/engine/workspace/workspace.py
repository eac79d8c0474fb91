"""The workspace of a trial: created from a fixture, used by commands and read by gates."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from evalhub.lib.limits import LARGEST_FILE
from evaluators.model import CommandResult, FileUnavailable
from evaluators.redaction import mask_values
from runs.errors import ProviderError
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT, COMMAND, Profile
from runs.sandbox.safe_paths import LeadsOutside, exists_beneath, read_beneath
from runs.sandbox.sandbox import Containment, Sandbox
from scenarios.formats.parsed import FixtureFile
from scenarios.spec import PostScript

SETUP_SECONDS = 300.0
_FOR_GATES = {"GIT_CONFIG_NOSYSTEM": "1"}
"""What commands other than setup have in addition; their home is empty, so Git has no configuration of a user."""


def fresh_folder(root: Path, prefix: str) -> Path:
    """Return a new directory under `root`, created if missing; only its owner has access."""
    folder = root / f"{prefix}{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        root.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    return folder


def fill(workspace: Path, files: Iterable[FixtureFile]) -> None:
    """Write files into a directory. Raises `ProviderError` (kind `setup`) for a path outside it."""
    for file in files:
        _write(workspace, file)


@dataclass(frozen=True)
class PostResult:
    """The result of a script after the agent; `note` is empty on success."""

    command: str
    result: CommandResult
    note: str = ""


@dataclass(frozen=True)
class LocalWorkspace:
    """A directory of this machine, for evaluators (`evaluators.model.Workspace`)."""

    path: Path
    scratch: Path
    """Scratch directory of providers and commands, outside the workspace."""
    containment: Containment
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of every command: `target.env` and those of the scenario's scripts."""
    secrets: tuple[str, ...] = ()
    """Secret values to mask in output and files."""
    tool: str = ""
    """The program under test, readable inside the sandbox."""
    record: Path | None = None
    """Written by the worker only: commands after the agent read the transcript there."""

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        network: bool = False,
        profile: Profile = COMMAND,
    ) -> CommandResult:
        """Run a shell command, with tight limits unless the profile has others. Never raises for a failing command."""
        return self._run(
            command, profile, timeout_seconds=timeout_seconds, env=env, stdin=stdin, network=network
        )

    def read(self, path: str) -> str:
        """Return a text file, secrets masked. Raises `FileUnavailable` if missing, outside, too large or not text."""
        try:
            content = read_beneath(self.path, path)
            return mask_values(content.decode("utf-8-sig"), self.secrets)
        except LeadsOutside as error:
            raise FileUnavailable(f"{path} leads out of the workspace.") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileUnavailable(f"{path} does not exist.") from error
        except UnicodeDecodeError as error:
            raise FileUnavailable(f"{path} is not UTF-8 text.") from error
        except OSError as error:
            raise FileUnavailable(f"{path} cannot be read: {error.strerror}.") from error

    def exists(self, path: str) -> bool:
        """Return whether a path exists. Raises `FileUnavailable` if it is outside."""
        try:
            return exists_beneath(self.path, path)
        except LeadsOutside as error:
            raise FileUnavailable(f"{path} leads out of the workspace.") from error
        except OSError as error:
            raise FileUnavailable(f"{path} can't be read: {error.strerror}.") from error

    def inside(self, path: Path) -> str:
        """Return the absolute path of a workspace or scratch file as commands see it."""
        return self._place.inside(path)

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables that the sandbox sets, such as PATH and HOME, before `env`."""
        return self._place.base_env()

    @cached_property
    def _place(self) -> Sandbox:
        # Only asked for paths and variables.
        return self.containment.around(self.path, self.scratch, profile=AGENT, network=False)

    def run_setup(self, commands: Sequence[str], *, timeout_seconds: float = SETUP_SECONDS) -> None:
        """Run the commands before the agent, with its limits and network.

        Raises `ProviderError` (kind `setup`) at the first that fails: the trial is an error, not a fail.
        """
        for command in commands:
            result = self._run(command, AGENT, timeout_seconds=timeout_seconds)
            if result.exit_code != 0:
                raise ProviderError(
                    f"The setup command '{command}' failed: {_describe_end(result)}. Correct it in the scenario.",
                    kind="setup",
                )

    def run_post(self, scripts: Iterable[PostScript]) -> tuple[PostResult, ...]:
        """Run all scripts after the agent; a failure is only noted."""
        return tuple(self._run_post(script) for script in scripts)

    def _run_post(self, script: PostScript) -> PostResult:
        result = self.run(script.command, timeout_seconds=script.timeout_seconds, network=script.network)
        if result.exit_code == 0:
            return PostResult(script.command, result)
        return PostResult(
            script.command, result, f"The post script '{script.command}' failed: {_describe_end(result)}."
        )

    def _run(
        self,
        command: str,
        profile: Profile,
        *,
        timeout_seconds: float,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        network: bool | None = None,
    ) -> CommandResult:
        try:
            sandbox = self.containment.around(
                self.path,
                self.scratch,
                profile=profile,
                network=network,
                readable=[self.record] if self.record and self.record.exists() else [],
                tool=self.tool,
            )
            result = run_process(
                command,
                cwd=self.path,
                env={**(_FOR_GATES if profile is COMMAND else {}), **self.env, **(env or {})},
                timeout_seconds=timeout_seconds,
                stdin=None if stdin is None else stdin.encode(),
                output_limit=LARGEST_FILE,
                limits=sandbox.limits,
                sandbox=sandbox,
            )
        except ProviderError as error:
            return CommandResult(exit_code=None, error=str(error))
        return CommandResult(
            exit_code=result.exit_code,
            stdout=mask_values(result.stdout.decode("utf-8", "replace"), self.secrets),
            stderr=mask_values(result.stderr.decode("utf-8", "replace"), self.secrets),
            timed_out=result.timed_out,
            truncated=result.truncated,
            seconds=result.seconds,
            error=result.error,
        )


def _write(workspace: Path, file: FixtureFile) -> None:
    path = PurePosixPath(file.path)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in file.path:
        raise ProviderError(
            f"The fixture's file '{file.path}' would lie outside the workspace. Give it a path within.",
            kind="setup",
        )
    target = workspace / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as written:
        _lock(written, fcntl.LOCK_EX)
        written.write(file.content)
    target.chmod(0o755 if file.executable else 0o644)
    _wait_until_closed(target)


def _wait_until_closed(target: Path) -> None:
    """Wait for processes that another lane is starting: until they run, they have this file open, too, and its lock.

    Linux doesn't execute a file that any process has open for writing (ETXTBSY).
    """
    with target.open("rb") as closed:
        _lock(closed, fcntl.LOCK_SH)


def _lock(file: BinaryIO, kind: int) -> None:
    # Some network file systems have no locks.
    with suppress(OSError):
        fcntl.flock(file, kind)


def _describe_end(result: CommandResult) -> str:
    output = (result.stderr or result.stdout).strip()[-500:].rstrip(".")
    ended = result.error.rstrip(".") or f"exit code {result.exit_code}"
    return f"{ended}: {output}" if output else ended
