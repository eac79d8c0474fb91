"""Grades captured evidence with the parsing and judging of execution."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from evaluators.grading.criteria import Criteria
from evaluators.grading.evaluate import LAYERS, Layer, gates_layer
from evaluators.grading.evidence import Evidence
from evaluators.grading.gates.base_gate import NOT_RUN, CommandGate
from evaluators.model import (
    CommandResult,
    Complete,
    Completion,
    CompletionError,
    CompletionRequest,
    FileUnavailable,
    Score,
    Workspace,
)
from evaluators.redaction import redact_json
from evaluators.transcripts import UnreadableTranscript
from runs.db.disk import cannot_store, check_room_for_commands
from runs.engine.assess import describe_recording, gather_evidence, judge_recording, unreadable
from runs.engine.grading.evidence import (
    Grading,
    evidence_as_recording,
    parse_evidence,
    select_scenario,
    workspace_files,
)
from runs.engine.trial_result import TrialResult, columns_of_result, judging_row
from runs.engine.workspace.tool_variables import trial_variables
from runs.engine.workspace.trial_folder import TrialFolder, trial_folder
from runs.engine.workspace.workspace import LocalWorkspace, PostResult
from runs.exchange.exports.document import result_json
from runs.sandbox.sandbox import Containment
from scenarios.spec import ScenarioSpec
from scenarios.tool_variables import resolve_env


def runs_commands(spec: ScenarioSpec) -> bool:
    """Return whether grading by the scenario runs a command."""
    criteria = spec.criteria
    return (
        bool(spec.post or criteria.scripts)
        or any(isinstance(gate, CommandGate) for gate in criteria.gates)
        or any(evaluator.needs_workspace for evaluator in criteria.evaluators)
    )


def grade_by_files(grading: Grading) -> dict[str, Any]:
    """Return every layer's scores without running commands; gates that need one have no verdict.

    Raises `ScenarioFileError` and `RequestError`.
    """
    spec = select_scenario(grading)
    return _grade(grading, spec, CapturedFiles(grading.evidence.files), layers=WITHOUT_COMMANDS)


def grade_in_workspace(grading: Grading, root: Path, containment: Containment) -> dict[str, Any]:
    """Return every layer's scores, with commands run in a workspace of the captured files.

    The workspace is created under `root` and removed. Raises `ScenarioFileError`, `RequestError`, `CannotStore`, and
    `ProviderError` for files that cannot be written.
    """
    spec = select_scenario(grading)
    try:
        return _graded_in_folder(grading, spec, root, containment)
    except Exception as error:
        # Broad because a full disk has many errors.
        if problem := cannot_store(error):
            raise problem from error
        raise


def _graded_in_folder(
    grading: Grading, spec: ScenarioSpec, root: Path, containment: Containment
) -> dict[str, Any]:
    with trial_folder(root, workspace_files(grading.evidence)) as folder:
        recording = evidence_as_recording(grading.evidence)
        folder.write_record(recording.raw, recording.events)
        workspace = _workspace(spec, folder, containment)
        graded = _grade(grading, spec, workspace, post=lambda: workspace.run_post(spec.post))
        if graded["outcome"] != "pass":
            # A command may have failed because its writes did.
            check_room_for_commands()
        return graded


def _workspace(spec: ScenarioSpec, folder: TrialFolder, containment: Containment) -> LocalWorkspace:
    tool = spec.criteria.tool
    bare = LocalWorkspace(
        folder.workspace,
        folder.scratch,
        containment,
        tool=tool.binary if tool else "",
        record=folder.record,
    )
    trial_env = trial_variables(bare, folder, scenario=spec.key)
    # Grading belongs to no project, so no other variables are known.
    return replace(
        bare, env=trial_env | resolve_env(tool.env if tool else {}, {**bare.variables, **trial_env})
    )


def _grade(
    grading: Grading,
    spec: ScenarioSpec,
    workspace: Workspace,
    *,
    post: Callable[[], tuple[PostResult, ...]] = tuple,
    layers: Sequence[Layer] = LAYERS,
) -> dict[str, Any]:
    recording = evidence_as_recording(grading.evidence)
    described = describe_recording(recording)
    try:
        transcript = parse_evidence(grading.evidence, recording)
    except UnreadableTranscript as error:
        return _result_document(spec, unreadable(described, recording, error))
    evidence = gather_evidence(
        spec,
        recording,
        transcript,
        workspace,
        seed=grading.evidence.seed,
        snapshot=grading.evidence.snapshot,
        complete=_reply(grading),
    )
    return _result_document(
        spec, judge_recording(described, spec.criteria, evidence, recording, post(), layers)
    )


def _reply(grading: Grading) -> Complete:
    """Return a judge that gives the captured reply."""
    reply = grading.evidence.judge_reply

    def answer(request: CompletionRequest) -> Completion:
        if reply is None:
            raise CompletionError("The evidence has no judge reply. Add it as `judge_reply`.")
        text = reply if isinstance(reply, str) else msgspec.json.encode(reply).decode()
        return Completion(text, model=request.model)

    return answer


def _gates_by_files(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    blind = replace(evidence, workspace=None)
    return tuple(gate.check(blind if isinstance(gate, CommandGate) else evidence) for gate in criteria.gates)


def _without_workspace(layer: Layer) -> Layer:
    def layer_without_commands(
        criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]
    ) -> tuple[Score, ...]:
        return layer(criteria, replace(evidence, workspace=None), so_far)

    return layer_without_commands


WITHOUT_COMMANDS: tuple[Layer, ...] = tuple(
    _gates_by_files if layer is gates_layer else _without_workspace(layer) for layer in LAYERS
)
"""The layers of execution for captured files, without commands."""


def _result_document(spec: ScenarioSpec, result: TrialResult) -> dict[str, Any]:
    """Return the result as a trial's document, without fields of stored trials."""
    scores = result.evaluation.scores if result.evaluation else ()
    judgings = [judging_row(0, score) for score in scores if score.judging]
    document: dict[str, Any] = redact_json(
        {"scenario": spec.key, **result_json(columns_of_result(result), judgings)}
    )
    if document["outcome"] == "pass" and any(score.message == NOT_RUN for score in scores):
        # Gates that did not run leave the outcome open.
        document |= {"outcome": None, "composite": None}
    return document


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
