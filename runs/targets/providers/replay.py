"""Replay recorded agent output: for tests, for regrading and for runs without a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from evaluators.model import Complete, Completion, CompletionError, CompletionRequest, Json
from evaluators.transcripts import UnreadableTranscript, parse
from runs.errors import ProviderError
from runs.sandbox.safe_paths import read_beneath
from runs.sandbox.sandbox import Containment
from runs.sandbox.target_roots import AllowedPath, PathRefused, Use
from runs.targets.providers.base import Availability, Invocation, Recording
from runs.targets.providers.options import PROGRAM_FIELDS, RETRY_FIELDS, Options, ResolvedTarget

_LIMIT = 256 << 20


class ReplayOptions(Options):
    """Where the recordings are, and their metadata."""

    unused_fields: ClassVar[frozenset[str]] = RETRY_FIELDS | PROGRAM_FIELDS | {"base_url"}

    opaque_fields: ClassVar[frozenset[str]] = frozenset(("response",))
    limits_turns: ClassVar[bool] = True
    path_fields: ClassVar[Mapping[str, Use]] = {"path": Use.READ}
    starts_in_workspace: ClassVar[frozenset[str]] = frozenset(("path",))

    path: str | dict[str, str]
    """A recorded stream, or one per scenario key."""
    parser: str = "plain_text"
    response: str | None = None
    exit_code: int | None = 0
    timed_out: bool = False


class Replay:
    """Reads a scenario's recording instead of starting an agent."""

    works_in_folder = False

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, ReplayOptions):
            raise TypeError(f"{target.name} isn't a replay target")
        self._target = target
        self._options = target.options
        self._roots = containment.targets

    def check(self) -> Availability:
        """Return whether every recording exists; those in a workspace can't be checked."""
        tried = True
        path = self._options.path
        for name in [path] if isinstance(path, str) else path.values():
            if not (Path(name).is_absolute() or self._target.base_folder):
                tried = False
                continue
            try:
                there = self._place(name).path.is_file()
            except PathRefused as error:
                return Availability(False, f"The target '{self._target.name}' cannot be used: {error}")
            if not there:
                return Availability(False, self._missing(name))
        return Availability(True, "" if tried else "Recordings are in each trial's workspace.", tried=tried)

    def invoke(self, invocation: Invocation) -> Recording:
        """Return the recording. Raises `ProviderError` (kind `configuration`) if it is missing."""
        name = self._name_for(invocation.spec.key)
        return Recording(
            raw=self._content(name, invocation.workspace),
            parser=self._options.parser,
            answer=self._options.response,
            exit_code=self._options.exit_code,
            timed_out=self._options.timed_out,
        )

    def reply(self, key: str) -> str:
        """Return a scenario's recorded answer. Raises `ProviderError` if it is missing or unreadable."""
        if self._options.response is not None:
            return self._options.response
        name = self._name_for(key)
        if not (Path(name).is_absolute() or self._target.base_folder):
            raise ProviderError(
                f"The judge '{self._target.name}' has no workspace to read {name} from. Give it a `response` or an "
                "absolute `path`.",
                kind="configuration",
            )
        try:
            return parse(self._options.parser, self._content(name, Path())).answer
        except UnreadableTranscript as error:
            raise ProviderError(str(error), kind="configuration") from error

    def _content(self, name: str, workspace: Path) -> bytes:
        try:
            if Path(name).is_absolute() or self._target.base_folder:
                return self._place(name).read(limit=_LIMIT)
            return read_beneath(workspace, name, limit=_LIMIT)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ProviderError(self._missing(name), kind="configuration") from error
        except OSError as error:
            raise ProviderError(
                f"The recording {name} cannot be read: {error.strerror}. "
                f"Give `path` a plain file of at most {_LIMIT >> 20} MB.",
                kind="configuration",
            ) from error

    def _place(self, name: str) -> AllowedPath:
        return self._roots.place(name, Use.READ, base=self._target.base_folder)

    def _name_for(self, key: str) -> str:
        path: Json = self._options.path
        if isinstance(path, str):
            return path
        if key not in path:
            raise ProviderError(
                f"The target '{self._target.name}' has no recording for the scenario '{key}'. "
                "Add it to `path` in the targets file.",
                kind="configuration",
            )
        return str(path[key])

    def _missing(self, name: str) -> str:
        base = self._target.base_folder
        return (
            f"The target '{self._target.name}' has no recording at {Path(base, name)}. "
            f"Record it, or correct `path` ({name}) in the targets file."
        )


def complete_with_replay(target: ResolvedTarget, containment: Containment) -> Complete:
    """Return recorded judgements as a model: the scenario's recording answers each request."""
    replay = Replay(target, containment)

    def complete(request: CompletionRequest) -> Completion:
        try:
            return Completion(text=replay.reply(request.key), model=target.name)
        except ProviderError as error:
            raise CompletionError(str(error)) from error

    return complete
