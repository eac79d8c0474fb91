"""Plays back what an agent printed at another time: for tests, for grading again, and for runs without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evaluators.model import Json
from runs.containment.beneath import read_beneath
from runs.providers.base import Availability, Invocation, ProviderError, Recording
from runs.providers.options import Options, ResolvedTarget

if TYPE_CHECKING:  # runs.containment.sandbox imports this package
    from runs.containment.sandbox import Containment

_LIMIT = 256 << 20


class ReplayOptions(Options):
    """Where the recordings are, and what else is known of them."""

    opaque_fields: ClassVar[frozenset[str]] = frozenset(("response",))

    path: str | dict[str, str]
    """A recorded stream, or one for each scenario key."""
    parser: str = "plain_text"
    response: str | None = None
    exit_code: int | None = 0
    timed_out: bool = False


class Replay:
    """Reads the recording of a scenario instead of starting anything."""

    works_in_folder = False

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, ReplayOptions):
            raise TypeError(f"{target.name} is no replay target")
        self._target = target
        self._options = target.options

    def check(self) -> Availability:
        """Available where every recording that is named from the base folder is there."""
        for name in self._names():
            path = self._located(name, None)
            if path is not None and not path.is_file():
                return Availability(False, self._missing(name, path))
        return Availability(True)

    def invoke(self, invocation: Invocation) -> Recording:
        """Return the recording. Raises `ProviderError` (kind `configuration`) where there is none."""
        name = self._name_for(invocation.key)
        path = self._located(name, invocation.workspace)
        return Recording(
            raw=self._content(name, path, invocation.workspace),
            parser=self._options.parser,
            answer=self._options.response,
            exit_code=self._options.exit_code,
            timed_out=self._options.timed_out,
        )

    def _content(self, name: str, path: Path | None, workspace: Path) -> bytes:
        if path is None:
            raise ProviderError(self._missing(name, Path(name)), kind="configuration")
        within = path.is_relative_to(workspace)
        root, beneath = (workspace, str(path.relative_to(workspace))) if within else (path.parent, path.name)
        try:
            return read_beneath(root, beneath, limit=_LIMIT)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ProviderError(self._missing(name, path), kind="configuration") from error
        except OSError as error:
            raise ProviderError(
                f"The recording {path} cannot be read: {error.strerror}. "
                f"Give `path` a plain file of at most {_LIMIT >> 20} MB.",
                kind="configuration",
            ) from error

    def _names(self) -> list[str]:
        path = self._options.path
        return [path] if isinstance(path, str) else list(path.values())

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

    def _located(self, name: str, workspace: Path | None) -> Path | None:
        """Absolute, else from the target's folder, else from the workspace; None where that is not known yet."""
        base = Path(self._target.base_folder) if self._target.base_folder else workspace
        if Path(name).is_absolute():
            return Path(name)
        return base / name if base else None

    def _missing(self, name: str, path: Path) -> str:
        return (
            f"The target '{self._target.name}' has no recording at {path}. "
            f"Record it, or correct `path` ({name}) in the targets file."
        )
