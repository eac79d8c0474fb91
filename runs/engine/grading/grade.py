"""Grades captured evidence with the parsing and judging of execution."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from evaluators.grading.evidence import Evidence
from evaluators.model import (
    Complete,
    Completion,
    CompletionError,
    CompletionRequest,
)
from evaluators.redaction import redact_json
from evaluators.transcripts import UnreadableTranscript
from runs.db.disk import cannot_store, check_room_for_commands
from runs.engine.assess import add_recording, describe_recording, judge_recording, unreadable
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
from runs.engine.workspace.workspace import LocalWorkspace
from runs.exchange.exports.document import result_json
from runs.sandbox.sandbox import Containment
from scenarios.spec import ScenarioSpec
from scenarios.tool_variables import resolve_env


def grade_in_workspace(grading: Grading, root: Path, containment: Containment) -> dict[str, Any]:
    """Return every layer's scores, with commands run in a workspace of the captured files.

    The workspace is created under `root` and removed. Raises `ScenarioFileError`, `RequestError`, `CannotStore`, and
    `ProviderError` for files that cannot be written.
    """
    spec = select_scenario(grading)
    try:
        with trial_folder(root, workspace_files(grading.evidence)) as folder:
            graded = _grade(grading, spec, folder, containment)
            if graded["outcome"] != "pass":
                # A command may have failed because its writes did.
                check_room_for_commands()
            return graded
    except Exception as error:
        # Broad because a full disk has many errors.
        if problem := cannot_store(error):
            raise problem from error
        raise


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
    grading: Grading, spec: ScenarioSpec, folder: TrialFolder, containment: Containment
) -> dict[str, Any]:
    recording = evidence_as_recording(grading.evidence)
    folder.write_record(recording.raw, recording.events)
    workspace = _workspace(spec, folder, containment)
    described = describe_recording(recording)
    try:
        transcript = parse_evidence(grading.evidence, recording)
    except UnreadableTranscript as error:
        return _result_document(spec, unreadable(described, recording, error))
    given = grading.evidence
    evidence = Evidence(
        transcript, workspace, seed=given.seed, snapshot=given.snapshot, complete=_reply(grading)
    )
    evidence = add_recording(evidence, spec, recording)
    return _result_document(
        spec, judge_recording(described, spec.criteria, evidence, recording, workspace.run_post(spec.post))
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


def _result_document(spec: ScenarioSpec, result: TrialResult) -> dict[str, Any]:
    """Return the result as a trial's document, without fields of stored trials."""
    scores = result.evaluation.scores if result.evaluation else ()
    judgings = [judging_row(0, score) for score in scores if score.judging]
    document = {"scenario": spec.key, **result_json(columns_of_result(result), judgings)}
    return dict(redact_json(document))
