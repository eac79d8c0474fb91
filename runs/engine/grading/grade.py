"""Grade captured evidence of a scenario with the same parsing and judging as an executed trial."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from evalhub.lib.limits import LARGEST_EXIT_CODE
from evalhub.lib.storable_text import Text
from evalhub.web.rest.request_body import JsonValue, Name, RequestBody
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import (
    Complete,
    Completion,
    CompletionError,
    CompletionRequest,
    Event,
    Transcript,
    Usage,
)
from evaluators.redaction import redact_json
from evaluators.transcripts import UnreadableTranscript, parse
from evaluators.transcripts.endings import with_cut_ends
from runs.db.disk import cannot_store, check_room_for_commands
from runs.engine.assess import add_recording, describe_recording, judge_recording, make_unreadable_result
from runs.engine.recording import TrialResult, columns_of_result, judging_row
from runs.engine.workspace.tool_variables import trial_variables
from runs.engine.workspace.workspace import LocalWorkspace, TrialFolder, trial_folder
from runs.errors import RequestError
from runs.exchange.exports.document import result_json
from runs.sandbox.sandbox import Containment
from runs.targets.providers.base import Recording
from scenarios.bundles import Bundle
from scenarios.formats.parsed import FixtureFile
from scenarios.reading import find_companions, read_suites
from scenarios.spec import ScenarioSpec
from scenarios.tool_variables import resolve_env

Parser = Literal[
    "events",
    "plain_text",
    "trace",
    "otel",
    "codex",
    "claude_code",
    "opencode",
    "chat",
    "gemini_cli",
    "qwen_code",
    "copilot_cli",
    "mini_swe_agent",
    "atif",
    "inspect",
    "aider",
]
"""Names of the transcript readers; a test compares them with `PARSERS`."""


class SuiteText(RequestBody):
    """A scenario file; its name decides the format if its content doesn't."""

    name: Name = "suite.yaml"
    text: Text


class Stream(RequestBody):
    """An agent's output and its reader."""

    parser: Parser
    text: Text


Count = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Tokens(RequestBody):
    """A model's tokens: input with those of the cache, output with those of reasoning, and these parts."""

    input: Count = 0
    output: Count = 0
    estimated: bool = False
    cache_read: Count = 0
    cache_write: Count = 0
    cache_write_1h: Count = 0
    reasoning: Count = 0


class CapturedCall(RequestBody):
    """One call of a tool, by an agent or a model."""

    name: Name
    params: dict[str, JsonValue] = {}
    output: JsonValue = None
    success: bool | None = None


class GivenEvidence(RequestBody):
    """Captured evidence; omitted fields are unknown."""

    transcript: Text | None = None
    """Output as plain text."""
    events: list[JsonValue] | None = None
    """Structured events, preferred over the text if they contain a tool call."""
    trace: list[JsonValue] | None = None
    stream: Stream | None = None
    answer: Text | None = None
    tool_calls: list[CapturedCall] | None = None
    """The calls, instead of those in events."""
    exit_code: Annotated[int, Field(ge=-LARGEST_EXIT_CODE, le=LARGEST_EXIT_CODE)] | None = 0
    timed_out: bool = False
    seconds: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    usage: Tokens | None = None
    files: dict[Name, Text] = {}
    """The workspace after the agent finished, by path; also the scenario's rubrics and attachments."""
    judge_reply: Text | dict[str, JsonValue] | None = None
    """A judge's answer, scored by the scenario's rubric."""
    seed: JsonValue = None
    snapshot: JsonValue = None


class Grading(RequestBody):
    """A request to grade."""

    suite: SuiteText
    scenario: Name | None = None
    """The scenario's key; null if the file has only one."""
    evidence: GivenEvidence = GivenEvidence()


def select_scenario(grading: Grading) -> ScenarioSpec:
    """Return the selected scenario. Raises `ScenarioFileError`, and `RequestError` for its key."""
    name = posixpath.basename(grading.suite.name) or "suite.yaml"
    suites = read_suites(Bundle(posixpath.splitext(name)[0], _suite_files(name, grading)))
    specs = {spec.key: spec for suite in suites for spec in suite.scenarios}
    if grading.scenario is None and len(specs) == 1:
        return next(iter(specs.values()))
    if grading.scenario in specs:
        return specs[grading.scenario]
    keys = ", ".join(specs)
    problem = f"no scenario '{grading.scenario}'" if grading.scenario else "more than one scenario"
    raise RequestError(f"{name} has {problem}. Choose one of: {keys}.")


def _suite_files(name: str, grading: Grading) -> dict[str, bytes]:
    """Return the suite's file with the files that it names.

    The evidence has the final workspace, so the initial folder only needs to exist.
    """
    text, captured = grading.suite.text.encode(), grading.evidence.files
    files = {name: text}
    for path in find_companions(name, text):
        if path in captured:
            files[path] = captured[path].encode()
        else:
            files[posixpath.join(path, ".keep")] = b""
    return files


def workspace_files(evidence: GivenEvidence) -> tuple[FixtureFile, ...]:
    """Return the captured files as initial files of a workspace."""
    return tuple(FixtureFile(path, text.encode()) for path, text in sorted(evidence.files.items()))


def evidence_as_recording(evidence: GivenEvidence) -> Recording:
    """Return the evidence as a recording."""
    parser, raw = "plain_text", (evidence.transcript or "").encode()
    if evidence.stream is not None:
        parser, raw = evidence.stream.parser, evidence.stream.text.encode()
    elif evidence.trace is not None:
        parser, raw = "trace", msgspec.json.encode(evidence.trace)
    return Recording(
        raw=raw,
        parser=parser,
        events=b"\n".join(map(msgspec.json.encode, evidence.events)) if evidence.events else None,
        answer=evidence.answer,
        exit_code=evidence.exit_code,
        timed_out=evidence.timed_out,
        usage=Usage(**evidence.usage.model_dump()) if evidence.usage else None,
        seconds=evidence.seconds,
    )


def parse_evidence(evidence: GivenEvidence, recording: Recording) -> Transcript:
    """Return the parsed transcript. Raises `UnreadableTranscript`."""
    transcript = parse(
        recording.parser, recording.raw, recording.events, events_are_trace=recording.events_are_trace
    )
    if evidence.timed_out:
        transcript = with_cut_ends(transcript)
    if evidence.tool_calls is not None:
        events = tuple(event for n, call in enumerate(evidence.tool_calls) for event in _events(str(n), call))
        transcript = msgspec.structs.replace(transcript, events=events, source="trace")
    if evidence.transcript and recording.parser != "plain_text":
        transcript = msgspec.structs.replace(transcript, text=evidence.transcript)
    return transcript


def _events(id: str, call: CapturedCall) -> tuple[Event, Event]:
    return (
        Event("tool_call", id, call.name, input=dict(call.params)),
        Event("tool_result", id, call.name, output=call.output, success=call.success),
    )


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
        return _result_document(spec, make_unreadable_result(described, recording, error))
    given = grading.evidence
    evidence = TrialEvidence(
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
