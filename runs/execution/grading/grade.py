"""Grading: the reading and judging of execution, over evidence that somebody captured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from evaluators.criteria import Criteria
from evaluators.evaluate import LAYERS, Layer, gates_layer
from evaluators.evidence import Evidence
from evaluators.gates.base_gate import NOT_RUN, CommandGate
from evaluators.model import Complete, Completion, CompletionError, CompletionRequest, Score, Workspace
from evaluators.transcripts import UnreadableTranscript
from runs.containment.sandbox import Containment
from runs.execution.assess import describe, judged, unreadable
from runs.execution.grading.captured import CapturedFiles
from runs.execution.grading.evidence import (
    Grading,
    chosen_scenario,
    recording_of,
    transcript_of,
    workspace_files,
)
from runs.execution.trial_folder import TrialFolder, trial_folder
from runs.execution.trial_result import TrialResult, columns, judging_row
from runs.execution.workspace import LocalWorkspace, PostResult
from runs.models import JudgingRecord, Trial
from runs.providers.base import Recording
from runs.reports.document import trial_json
from scenarios.models import Scenario
from scenarios.spec import ScenarioSpec

_OF_STORED_TRIALS = ("id", "index", "state", "artifacts")


def runs_commands(spec: ScenarioSpec) -> bool:
    """Tell whether grading by the scenario runs any command."""
    criteria = spec.criteria
    return (
        bool(spec.post or criteria.scripts)
        or any(isinstance(gate, CommandGate) for gate in criteria.gates)
        or any(evaluator.needs_workspace for evaluator in criteria.evaluators)
    )


def grade_by_files(wanted: Grading) -> dict[str, Any]:
    """Return what every layer says, with no command run: what needs one comes back without a verdict.

    Raises `ScenarioFileError` and `RequestError`.
    """
    spec = chosen_scenario(wanted)
    return _graded(wanted, spec, CapturedFiles(wanted.evidence.files), layers=WITHOUT_COMMANDS)


def grade_in_workspace(wanted: Grading, root: Path, containment: Containment) -> dict[str, Any]:
    """Return what every layer says, with commands run in a workspace made of the captured files.

    The workspace lies under `root` and is removed. Raises `ScenarioFileError`, `RequestError` and
    `ProviderError` for files that no workspace can hold.
    """
    spec = chosen_scenario(wanted)
    with trial_folder(root, workspace_files(wanted.evidence)) as folder:
        recording = recording_of(wanted.evidence)
        folder.write_record(recording.raw, recording.events)
        workspace = _workspace(spec, folder, containment)
        return _graded(wanted, spec, workspace, post=lambda: workspace.run_post(spec.post))


def _workspace(spec: ScenarioSpec, folder: TrialFolder, containment: Containment) -> LocalWorkspace:
    tool = spec.criteria.tool
    bare = LocalWorkspace(
        folder.workspace,
        folder.scratch,
        containment,
        tool=tool.binary if tool else "",
        record=folder.record,
    )
    told = {
        "LLM_TOOL_TEST_FIXTURE_DIR": bare.inside(folder.workspace),
        "LLM_TOOL_TEST_RESULTS_DIR": bare.inside(folder.scratch),
        "LLM_TOOL_TEST_SCENARIO": spec.key,
        "LLM_TOOL_TEST_TRANSCRIPT": bare.inside(folder.transcript),
        "LLM_TOOL_TEST_EVENTS": bare.inside(folder.events),
    }
    return replace(bare, env={**told, **(tool.env if tool else {})})


def _graded(
    wanted: Grading,
    spec: ScenarioSpec,
    workspace: Workspace,
    *,
    post: Callable[[], tuple[PostResult, ...]] = tuple,
    layers: Sequence[Layer] = LAYERS,
) -> dict[str, Any]:
    recording = recording_of(wanted.evidence)
    described = describe(recording)
    try:
        evidence = _evidence(wanted, spec, recording, workspace)
    except UnreadableTranscript as error:
        return _shown(spec, unreadable(described, recording, error))
    return _shown(spec, judged(described, spec.criteria, evidence, recording, post(), layers))


def _evidence(wanted: Grading, spec: ScenarioSpec, recording: Recording, workspace: Workspace) -> Evidence:
    transcript = transcript_of(wanted.evidence, recording)
    env = workspace.env if isinstance(workspace, LocalWorkspace) else {}
    return Evidence(
        transcript=transcript,
        workspace=workspace,
        tool=spec.criteria.tool,
        prompt=spec.prompt,
        answer=recording.answer if recording.answer is not None else transcript.answer,
        exit_code=recording.exit_code,
        timed_out=recording.timed_out,
        seconds=recording.seconds,
        usage=recording.usage or transcript.usage,
        complete=_reply(wanted),
        script_env={name: value for name, value in env.items() if name.startswith("LLM_TOOL_TEST_")},
        seed=wanted.evidence.seed,
        snapshot=wanted.evidence.snapshot,
    )


def _reply(wanted: Grading) -> Complete:
    """Return a judge that answers what was captured of one."""
    given = wanted.evidence.judge_reply

    def answer(request: CompletionRequest) -> Completion:
        if given is None:
            raise CompletionError("No judge's answer came with the evidence. Give one as `judge_reply`.")
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        return Completion(text, model=request.model)

    return answer


def _gates_by_files(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    blind = replace(evidence, workspace=None)
    return tuple(gate.check(blind if isinstance(gate, CommandGate) else evidence) for gate in criteria.gates)


def _without_workspace(layer: Layer) -> Layer:
    def asked(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
        return layer(criteria, replace(evidence, workspace=None), so_far)

    return asked


WITHOUT_COMMANDS: tuple[Layer, ...] = tuple(
    _gates_by_files if layer is gates_layer else _without_workspace(layer) for layer in LAYERS
)
"""The layers of execution, where files can be looked at and no command may run."""


def _shown(spec: ScenarioSpec, result: TrialResult) -> dict[str, Any]:
    """Return the result as a trial's document without what only a stored trial has."""
    trial = Trial(scenario=Scenario(key=spec.key), **columns(result))
    scores = result.evaluation.scores if result.evaluation else ()
    rows = [judging_row(0, score) for score in scores if score.judging]
    judgings = [JudgingRecord(**{name: row[name] for name in row if name != "trial"}) for row in rows]
    shown = trial_json(trial, judgings, ())
    if shown["outcome"] == "pass" and any(score.message == NOT_RUN for score in scores):
        # What was not run decides nothing, so nobody can say that it passed.
        shown |= {"outcome": None, "composite": None}
    return {name: value for name, value in shown.items() if name not in _OF_STORED_TRIALS}
