"""A script as judge."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from evaluators.evidence import Evidence
from evaluators.model import Json
from evaluators.scoring.base import BaseEvaluator, Finding, answer, trace_context
from evaluators.scoring.case import Case
from evaluators.scoring.scripts import run_judge_script


class CodeJudge(BaseEvaluator):
    """A script reads the case and the answer as JSON and prints the score."""

    type: Literal["code_judge"] = "code_judge"
    script: str = Field(min_length=1)
    cwd: str = ""
    """Folder among the files that came with the scenario."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    network: bool = False

    @property
    def needs_workspace(self) -> bool:
        return True

    def find(self, case: Case, evidence: Evidence) -> Finding:
        return run_judge_script(
            self.script,
            self._given(case, evidence),
            evidence,
            cwd=self.cwd,
            timeout_seconds=self.timeout_seconds,
            network=self.network,
        )

    def _given(self, case: Case, evidence: Evidence) -> dict[str, Json]:
        """Return what the script reads; the paths are relative to where it runs."""
        guidelines = self._from_here(case.guidelines)
        messages = [message.model_dump(exclude_none=True) for message in case.input_messages]
        return {
            "question": case.question or evidence.prompt,
            "expected_outcome": case.expected_outcome,
            "reference_answer": case.reference_answer,
            "candidate_answer": answer(evidence),
            "guideline_paths": guidelines,
            "guideline_files": guidelines,
            "input_files": self._from_here(case.input_files),
            "input_messages": messages,
            "input_segments": [part for message in messages for part in _segments(message.get("content"))],
            "expected_messages": [one.model_dump(exclude_none=True) for one in case.expected_messages],
            **trace_context(evidence),
        }

    def _from_here(self, paths: Sequence[str]) -> list[str]:
        return [posixpath.relpath(path, self.cwd or ".") for path in paths]


def _segments(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "value": content}]
    return list(content) if isinstance(content, list | tuple) else []
