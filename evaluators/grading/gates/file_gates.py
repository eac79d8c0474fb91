"""Gates on files in the workspace, among them protected files, which aren't part of the task."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.base_gate import NOT_RUN, BaseGate, PatternText, Verdict, contains_text, matches
from evaluators.model import FileUnavailable, Score, Workspace
from evaluators.name_lists import list_names


class FileGate(BaseGate):
    """A gate on one path of the workspace."""

    path: Annotated[str, Field(min_length=1)]

    def check(self, evidence: TrialEvidence) -> Score:
        if evidence.workspace is None:
            return self.score(None, NOT_RUN, path=self.path)
        try:
            passed, message, extra = self.judge(evidence.workspace)
        except FileUnavailable as error:
            return self.score(False, str(error), path=self.path)
        return self.score(passed, message, path=self.path, **extra)

    @abstractmethod
    def judge(self, workspace: Workspace) -> Verdict:
        """Return verdict, message and details. Raises `FileUnavailable`."""


class FileExists(FileGate):
    """The path exists."""

    type: Literal["file_exists"] = "file_exists"

    def judge(self, workspace: Workspace) -> Verdict:
        passed = workspace.exists(self.path)
        return passed, f"{self.path} {'exists' if passed else 'does not exist'}.", {}


class FileContains(FileGate):
    """The file contains a text."""

    type: Literal["file_contains"] = "file_contains"
    substring: str

    def judge(self, workspace: Workspace) -> Verdict:
        return contains_text(self.path, workspace.read(self.path), self.substring)


class FileMatches(FileGate):
    """A regular expression matches the file."""

    type: Literal["file_matches"] = "file_matches"
    pattern: PatternText

    def judge(self, workspace: Workspace) -> Verdict:
        return matches(self.path, workspace.read(self.path), self.pattern)


_SHOWN = 5


class ProtectedUnchanged(BaseGate):
    """The agent changed no protected file, and added none where a pattern matches."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["protected_unchanged"] = "protected_unchanged"

    def check(self, evidence: TrialEvidence) -> Score:
        changed = evidence.protected_changes
        message = (
            f"The agent changed protected files: {list_names(changed, _SHOWN)}."
            if changed
            else "The agent changed no protected file."
        )
        return self.score(not changed, message, expected=0, actual=len(changed))
