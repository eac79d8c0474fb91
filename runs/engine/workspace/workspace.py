"""The workspace of a trial and its other folders: created from a fixture, used by commands, read by gates.

Each process creates trials' folders in a directory of its own, with a locked file beside it while it runs. The
next process removes the directories of killed processes; those of another machine only after a week, because not
every network drive shows locks of others.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from socket import gethostname
from typing import BinaryIO

from evalhub.lib.limits import LARGEST_FILE
from evaluators.model import CommandResult, FileUnavailable
from evaluators.redaction import mask_values
from runs.errors import ProviderError
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT, COMMAND, Profile
from runs.sandbox.safe_paths import LeadsOutside, exists_beneath, read_beneath, write_beneath
from runs.sandbox.safe_walk import remove_tree
from runs.sandbox.sandbox import Containment, Sandbox
from scenarios.formats.parsed import FixtureFile
from scenarios.spec import PostScript

logger = logging.getLogger(__name__)

_LOCK = ".lock"
_making = threading.Lock()


def own_area(root: Path) -> Path:
    """Return this process's directory under `root`; create both if missing."""
    with _making:
        return _area(root, os.getpid())


@cache
def _area(root: Path, _process: int) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    area = root / f"process-{secrets.token_hex(8)}@{gethostname()}"
    # Locked before the directory exists: without a lock it would count as abandoned.
    lock = os.open(_lock_of(area), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        area.mkdir(mode=0o700)
    except OSError:
        # On a full disk every trial retries.
        _lock_of(area).unlink(missing_ok=True)
        os.close(lock)
        raise
    atexit.register(_give_up, area, lock, os.getpid())
    _remove_left(root)
    return area


def _lock_of(area: Path) -> Path:
    return area.with_name(f"{area.name}{_LOCK}")


def _give_up(area: Path, lock: int, process: int) -> None:
    """Remove the area when its process ends, but not in forked processes."""
    if os.getpid() == process:
        _clear(area)
        os.close(lock)


def _remove_left(root: Path) -> None:
    """Remove the areas of processes that have ended."""
    for area in filter(_may_be_left, root.glob("process-*@*")):
        try:
            lock = os.open(_lock_of(area), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            logger.warning("%s cannot be read: %s", area, error)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _clear(area)
        except BlockingIOError:
            # Its process is running.
            continue
        finally:
            os.close(lock)


def _may_be_left(area: Path) -> bool:
    """Return whether the lock shows that the area is abandoned. Every trial updates the directory's time."""
    if area.name.endswith(_LOCK):
        return False
    if area.name.endswith(f"@{gethostname()}"):
        return True
    try:
        # Age after which directories of another machine are removed.
        return time.time() - area.stat().st_mtime > 7 * 24 * 3600.0
    except FileNotFoundError:
        # Another process was faster.
        return False


def _clear(area: Path) -> None:
    """Remove a locked area, and its lock last."""
    try:
        remove_tree(area)
        _lock_of(area).unlink(missing_ok=True)
    except OSError as error:
        # No trial depends on it; the log shows what uses the disk.
        logger.warning("%s was not removed: %s", area, error)


_NAMES = ("workspace", "scratch", "bundle", "record", "server", "door", "kept")


@dataclass(frozen=True)
class TrialFolder:
    """Paths on the host; they are removed after the trial."""

    workspace: Path
    scratch: Path
    bundle: Path
    """Files of a scenario outside the workspace: attachments, guidelines; judges' scripts after the agent."""
    record: Path
    """Written by the worker after the agent, for commands that read it."""
    server: Path
    """Of the MCP server under test and its proxy, out of the agent's reach."""
    door: Path
    """Where agents reach the proxy; they can't write there."""
    kept: Path
    """Protected files as they stood after setup; no command sees them."""

    @property
    def transcript(self) -> Path:
        """The agent's raw output, for scripts (`LLM_TOOL_TEST_TRANSCRIPT`)."""
        return self.record / "transcript.raw.txt"

    @property
    def events(self) -> Path:
        """Structured events, for scripts (`LLM_TOOL_TEST_EVENTS`)."""
        return self.record / "events.jsonl"

    def write_record(self, raw: bytes, events: bytes | None) -> None:
        """Write the agent's output into its new directory. Raises `ProviderError` if that exists."""
        try:
            self.record.mkdir()
        except FileExistsError as error:
            raise ProviderError(
                f"The trial wrote to {self.record.name}, where only evalhub writes. "
                "Run it in a sandbox (EVALHUB_SANDBOX).",
                kind="command",
            ) from error
        write_beneath(self.record, self.transcript.name, raw)
        write_beneath(self.record, self.events.name, events or b"")

    def lay_judging(self, files: Sequence[FixtureFile]) -> None:
        """Lay the bundle's files that judge when the agent has ended. Raises `ProviderError` if their place is taken."""
        for path in (file.path for file in files):
            if os.path.lexists(self.bundle / path) or not _is_real(self.bundle, path.rpartition("/")[0]):
                raise ProviderError(
                    f"The trial wrote to {self.bundle.name}/{path}, where only evalhub writes. "
                    "Run it in a sandbox (EVALHUB_SANDBOX).",
                    kind="command",
                )
        fill(self.bundle, files)


def _is_real(root: Path, folder: str) -> bool:
    """Return whether each step to a folder is a folder itself, as far as it exists."""
    while folder:
        state = (root / folder).lstat() if os.path.lexists(root / folder) else None
        if state and not stat.S_ISDIR(state.st_mode):
            return False
        folder = folder.rpartition("/")[0]
    return True


@contextmanager
def trial_folder(
    root: Path,
    files: tuple[FixtureFile, ...],
    bundle: tuple[FixtureFile, ...] | None = None,
    *,
    inside: str = "",
) -> Iterator[TrialFolder]:
    """Create the directories with these files in workspace and bundle; remove them in the end.

    Without a bundle (None) it has no directory, and `write_record` makes that of the record. `inside` is the bundle's
    folder where commands start, which may have no files yet.
    """
    base = fresh_folder(own_area(root), "trial-")
    folder = TrialFolder(*(base / name for name in _NAMES))
    try:
        folder.workspace.mkdir()
        folder.scratch.mkdir()
        fill(folder.workspace, files)
        if bundle is not None:
            (folder.bundle / inside).mkdir(parents=True)
            fill(folder.bundle, bundle)
        yield folder
    finally:
        try:
            remove_tree(base, folder.workspace, folder.scratch)
        except OSError as error:
            # The trial has its result; the next process that works here retries.
            logger.warning("%s was not removed: %s", base, error)


def placeholder_paths(root: Path) -> TrialFolder:
    """Return paths for a trial that needs no directories; none is created."""
    return TrialFolder(*(root / "none" / name for name in _NAMES))


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
