"""Captured files as a workspace without commands."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from evaluators.gates.base_gate import NOT_RUN
from evaluators.model import CommandResult, FileUnavailable


@dataclass(frozen=True)
class CapturedFiles:
    """Files by path, for gates (`evaluators.model.Workspace`)."""

    files: Mapping[str, str]

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        network: bool = False,
    ) -> CommandResult:
        """Return a result that says that nothing ran."""
        return CommandResult(exit_code=None, error=NOT_RUN)

    def read(self, path: str) -> str:
        """Return a captured text. Raises `FileUnavailable`."""
        content = self.files.get(_inside(path))
        if content is None:
            raise FileUnavailable(f"{path} does not exist.")
        return content

    def exists(self, path: str) -> bool:
        """Return whether a file or folder was captured. Raises `FileUnavailable` for a path outside."""
        inside = _inside(path)
        return inside == "." or any(each == inside or each.startswith(inside + "/") for each in self._paths())

    def _paths(self) -> list[str]:
        return [posixpath.normpath(each) for each in self.files]


def _inside(path: str) -> str:
    normal = posixpath.normpath(path)
    if path.startswith("/") or normal == ".." or normal.startswith("../"):
        raise FileUnavailable(f"{path} leads out of the workspace.")
    return normal
