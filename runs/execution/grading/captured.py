"""Captured files as a workspace in which nothing can be run."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from evaluators.gates.base_gate import NOT_RUN
from evaluators.model import CommandResult, FileUnavailable


@dataclass(frozen=True)
class CapturedFiles:
    """Files by path, as gates look at them (`evaluators.model.Workspace`)."""

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
        """Return that nothing was run."""
        return CommandResult(exit_code=None, error=NOT_RUN)

    def read(self, path: str) -> str:
        """Return a captured text. Raises `FileUnavailable`."""
        found = self.files.get(_inside(path))
        if found is None:
            raise FileUnavailable(f"{path} does not exist.")
        return found

    def exists(self, path: str) -> bool:
        """Tell whether a file or a folder of one was captured. Raises `FileUnavailable` for a path outside."""
        wanted = _inside(path)
        return wanted == "." or any(each == wanted or each.startswith(wanted + "/") for each in self._paths())

    def _paths(self) -> list[str]:
        return [posixpath.normpath(each) for each in self.files]


def _inside(path: str) -> str:
    found = posixpath.normpath(path)
    if path.startswith("/") or found == ".." or found.startswith("../"):
        raise FileUnavailable(f"{path} leads out of the workspace.")
    return found
