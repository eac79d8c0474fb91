"""A gate on a made-up workspace."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from evaluators.grading.gates import Gate
from evaluators.model import Score
from tests.evaluators.samples import FakeWorkspace, evidence

gate_of: TypeAdapter[Any] = TypeAdapter(Gate)


def check(
    gate: dict[str, Any], result: Any = None, files: dict[str, str] | None = None, **more: Any
) -> Score:
    workspace = FakeWorkspace(files or {}, {"run": result} if result else {})
    given = {"command": "run", **gate} if result else gate
    return gate_of.validate_python(given).check(evidence(workspace=workspace, **more))
