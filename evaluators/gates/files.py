"""Gates that look at the files the agent left; none of them leaves the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from evaluators.gates.base import NOT_RUN, BaseGate
from evaluators.gates.commands import PatternText
from evaluators.model import FileUnavailable, Json, Score, Workspace
from evaluators.patterns import SlowPattern, compile_pattern

if TYPE_CHECKING:
    from evaluators.evidence import Evidence


class FileGate(BaseGate):
    """A gate on one path of the workspace."""

    path: str

    def check(self, evidence: Evidence) -> Score:
        if evidence.workspace is None:
            return self.score(None, NOT_RUN, path=self.path)
        try:
            passed, message, extra = self.judge(evidence.workspace)
        except FileUnavailable as error:
            return self.score(False, str(error), path=self.path)
        return self.score(passed, message, path=self.path, **extra)

    def judge(self, workspace: Workspace) -> tuple[bool, str, dict[str, Json]]:
        """Return verdict, message and what more to keep. Raises `FileUnavailable`."""
        raise NotImplementedError


class FileExists(FileGate):
    """The path exists."""

    type: Literal["file_exists"] = "file_exists"

    def judge(self, workspace: Workspace) -> tuple[bool, str, dict[str, Json]]:
        passed = workspace.exists(self.path)
        return passed, f"{self.path} {'exists' if passed else 'does not exist'}.", {}


class FileContains(FileGate):
    """The file contains a text."""

    type: Literal["file_contains"] = "file_contains"
    substring: str

    def judge(self, workspace: Workspace) -> tuple[bool, str, dict[str, Json]]:
        passed = self.substring in workspace.read(self.path)
        verb = "contains" if passed else "does not contain"
        return passed, f"{self.path} {verb} '{self.substring}'.", {"expected": self.substring}


class FileMatches(FileGate):
    """The file matches a regular expression somewhere."""

    type: Literal["file_matches"] = "file_matches"
    pattern: PatternText

    def judge(self, workspace: Workspace) -> tuple[bool, str, dict[str, Json]]:
        try:
            match = compile_pattern(self.pattern).search(workspace.read(self.path))
        except SlowPattern as error:
            return False, str(error), {"expected": self.pattern}
        verb = "matches" if match else "does not match"
        actual = match.text if match else None
        return (
            match is not None,
            f"{self.path} {verb} '{self.pattern}'.",
            {"expected": self.pattern, "actual": actual},
        )
