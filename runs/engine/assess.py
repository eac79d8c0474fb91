"""Turn a recording into a result: read it, judge it and store its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from itertools import islice

from django.conf import settings
from msgspec import structs

from evalhub.lib.limits import LONGEST_ERROR
from evalhub.lib.numbers import format_count
from evaluators.grading.assertions import calls_of_transcript
from evaluators.grading.costs import usage_parts
from evaluators.grading.evaluate import LAYERS, Criteria, Evaluation, Layer, evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import AgentResult, Json, Transcript
from evaluators.tool_use.attempts import find_attempts
from evaluators.tool_use.diagnosis import Thresholds, diagnose, error_messages, waste_scores
from evaluators.tool_use.exposure import quoted_events
from evaluators.tool_use.not_started import find_not_started
from evaluators.transcripts import UnreadableTranscript, parse
from evaluators.transcripts.endings import with_cut_ends
from evaluators.transcripts.sessions.sub_agents import is_own_account, with_sub_agents
from evaluators.transcripts.traces import trace_summary
from runs.engine.context import RunContext
from runs.engine.mcp.mcp_server import mark_tested_calls
from runs.engine.recording import TrialResult
from runs.engine.task import Task, documents_for
from runs.engine.tool.tool_recording import recorded_calls
from runs.engine.workspace.guidance import file_read_by, measure_exposure
from runs.engine.workspace.kept_files import KeptFiles, TimeLeft, keep_trial_files
from runs.engine.workspace.safeguards import Safeguards, Tampering
from runs.engine.workspace.workspace import LocalWorkspace, PostResult, TrialFolder
from runs.errors import ProviderError
from runs.models.trial import json_of
from runs.results.files.artifacts import StoredFile
from runs.targets.agents.program_lookup import OTHERS
from runs.targets.agents.session_end import Broken, account_of, broken_by
from runs.targets.pricing import note_cost_limit, price_recording
from runs.targets.providers.base import Recording
from runs.targets.providers.prices import price_source
from scenarios.guidance import Guidance
from scenarios.named_files import is_hidden
from scenarios.spec import ScenarioSpec

GROUP = "evalhub.tokenizers"
"""Entry points that are functions from a text to its number of tokens."""


def chosen_tokenizer() -> Callable[[str], int] | None:
    """Return the tokenizer that EVALHUB_TOKENIZER names; None without one. Raises `ProviderError` if it is missing."""
    return _tokenizer(settings.TOKENIZER) if settings.TOKENIZER else None


@cache
def _tokenizer(name: str) -> Callable[[str], int]:
    try:
        (entry,) = entry_points(group=GROUP, name=name)
        count = entry.load()
    except (ValueError, ImportError, AttributeError) as error:
        raise ProviderError(
            f"The tokenizer '{name}' of EVALHUB_TOKENIZER can't be loaded: {error}. Install a package on the worker "
            f"with an entry point of this name in the group {GROUP}.",
            kind="configuration",
        ) from error

    def counted(text: str) -> int:
        try:
            return int(count(text))
        except Exception as error:
            # Broad because it is not our code.
            raise ProviderError(
                f"The tokenizer '{name}' failed: {error}. Fix it.", kind="configuration"
            ) from error

    return counted


LONGEST_SCRIPT_OUTPUT = 4000
MOST_MESSAGES = 100
"""Error messages of a trial that the run's diagnosis reads."""


def assess(
    task: Task,
    recording: Recording,
    folder: TrialFolder | None = None,
    workspace: LocalWorkspace | None = None,
    safeguards: Safeguards | None = None,
) -> TrialResult:
    """Return the trial's result. Output that can't be parsed is an error; its files are stored.

    The workspace is stored as the agent left it; then protected files are restored, before scripts and gates.
    """
    stored = KeptFiles()
    if safeguards:
        safeguards.open_folders()
    if task.context.keeps_files:
        hidden = task.hidden
        start = [file for file in task.files if not is_hidden(file.path, hidden)]
        stored = keep_trial_files(
            recording, folder, task.secrets, start if folder else (), TimeLeft(stopped=task.stopped)
        )
    tampering = (
        safeguards.after_agent(task.solution_changes, stopped=task.stopped) if safeguards else Tampering()
    )
    described = describe_recording(
        recording,
        stored.rows,
        ({"workspace": stored.workspace} if stored.workspace else {}) | tampering.as_json(),
    )
    try:
        transcript = parse_recording(recording)
    except UnreadableTranscript as error:
        return make_unreadable_result(described, recording, error)
    transcript = mark_tested_calls(transcript, task, recording)
    recording = price_recording(recording, transcript, task.context.target, task.context.model)
    recording = note_cost_limit(recording, task.spec.cost.max_usd)
    post: tuple[PostResult, ...] = ()
    if folder is not None and workspace is not None:
        if task.runs_commands:
            folder.write_record(recording.raw, recording.events)
        post = workspace.run_post(task.spec.post)
    bundle = replace(workspace, path=folder.bundle) if workspace and folder and task.spec.bundle else None
    evidence = TrialEvidence(
        transcript,
        workspace,
        bundle,
        seed=task.context.seed,
        snapshot=task.context.options.snapshot,
        executes_tools=task.executes_tools,
        complete=task.context.complete,
        model=task.context.model,
        protected_changes=tampering.protected.paths,
        changed_files=tuple(stored.changed_paths),
        hides_skill=task.context.options.lift,
    )
    evidence = add_recording(evidence, task.spec, recording)
    laid = task.guidance_copies
    reached = exposure_detail(task.context, task.spec, transcript, laid=laid, in_folder=folder is not None)
    described = replace(described, detail=described.detail | reached)
    limits = task.context.thresholds
    return judge_recording(described, task.criteria, evidence, recording, post, task.context.layers, limits)


def exposure_detail(
    context: RunContext, spec: ScenarioSpec, transcript: Transcript, *, laid: Guidance, in_folder: bool
) -> dict[str, Json]:
    """Return how far the run's guidance got, for the trial's detail; nothing for a trial without guidance."""
    documents = documents_for(context, spec)
    if not documents:
        return {}
    sent = bool(spec.bundle)
    guidance_exposure = measure_exposure(
        documents, transcript, reads=file_read_by(context.target), laid=laid, sent=sent, prompt=spec.prompt
    )
    if not in_folder and not sent:
        why = "The target has no workspace to lay it in."
        guidance_exposure = structs.replace(guidance_exposure, delivered=False, in_context=False, why=why)
    return {"exposure": json_of(guidance_exposure)}


def parse_recording(recording: Recording) -> Transcript:
    """Return the recording's transcript, empty if the time was up before the first line. Raises `UnreadableTranscript`."""
    if recording.timed_out and not recording.events and b"\n" not in recording.raw:
        return Transcript()
    transcript = account_of(recording) or parse(
        recording.parser, recording.raw, recording.events, events_are_trace=recording.events_are_trace
    )
    transcript = with_sub_agents(transcript, recording.parser, recording.logs)
    return with_cut_ends(transcript) if recording.was_cut else transcript


def describe_recording(
    recording: Recording, artifacts: tuple[StoredFile, ...] = (), detail: dict[str, Json] | None = None
) -> TrialResult:
    """Return the result as far as the recording has it, before parsing and judging."""
    return TrialResult(
        outcome="",
        execution=AgentResult(**{**recording.facts, "answer": None}),
        artifacts=artifacts,
        detail={
            **(detail or {}),
            **({"agent_version": recording.version} if recording.version else {}),
            **({"own_account": True} if is_own_account(recording.logs) else {}),
        },
    )


def make_unreadable_result(
    described: TrialResult, recording: Recording, error: UnreadableTranscript
) -> TrialResult:
    """Return the result of a trial whose output could not be read."""
    detail = described.detail | {"notes": list(recording.notes)}
    if broken := broken_by(recording):
        return replace(
            described, outcome="error", error=broken.sentence, error_kind=broken.kind, detail=detail
        )
    printed = recording.stderr.strip()[-LONGEST_ERROR:]
    sentence = f"{error} Standard error: {printed}" if printed else str(error)
    return replace(described, outcome="error", error=sentence, error_kind="transcript", detail=detail)


def judge_recording(
    described: TrialResult,
    criteria: Criteria,
    evidence: TrialEvidence,
    recording: Recording,
    post: tuple[PostResult, ...] = (),
    layers: Sequence[Layer] = LAYERS,
    limits: Thresholds = Thresholds(),  # noqa: B008 immutable
) -> TrialResult:
    """Return the result with every layer's scores; a broken session is an error, whatever its scores are."""
    broken = broken_by(recording) or _unread(recording, criteria)
    if broken:
        criteria = criteria.model_copy(update={"judge": None})
    if broken and recording.unread_stream:
        # Nothing judges a stream as if it were prose.
        criteria = criteria.model_copy(update={"evaluators": (), "expect": None})
    evaluation = evaluate(criteria, evidence, layers)
    if broken:
        evaluation = structs.replace(
            evaluation, outcome="error", error=broken.sentence, composite=None, composite_weights={}
        )
    commands, passed = evidence.interaction.commands, evaluation.outcome == "pass"
    wasted = waste_scores(evidence.transcript, commands, passed=passed)
    evaluation = structs.replace(evaluation, scores=evaluation.scores + wasted)
    cost = recording.cost_usd if recording.cost_usd is not None else evidence.transcript.cost_usd
    used = evidence.usage
    paid = {
        "price_source": recording.price_source or price_source(cost, ()),
        "cost": json_of(recording.cost) if recording.cost else None,
        "cost_limit": recording.cost_limit,
        "usage": usage_parts(used) if used and not used.estimated else None,
    }
    return replace(
        described,
        outcome=evaluation.outcome,
        error=evaluation.error,
        error_kind=broken.kind
        if broken
        else (
            next((score.layer for score in evaluation.scores if score.error), "") if evaluation.error else ""
        ),
        evaluation=evaluation,
        execution=AgentResult(**{**evidence.facts, "cost_usd": cost}),
        transcript=evidence.transcript,
        interaction=evidence.interaction,
        detail=described.detail
        | _detail(evidence, evaluation, recording, post, limits, described.detail)
        | {name: value for name, value in paid.items() if value},
    )


def add_recording(evidence: TrialEvidence, spec: ScenarioSpec, recording: Recording) -> TrialEvidence:
    """Return what the layers read, with what a recording and its scenario have of it."""
    record, lost = recorded_calls(recording)
    transcript, workspace = evidence.transcript, evidence.workspace
    known = recording.facts | {"usage": recording.usage or transcript.usage}
    return replace(
        evidence,
        **(known | {"answer": transcript.answer if recording.answer is None else recording.answer}),
        tool=spec.criteria.tool,
        key=spec.key,
        prompt=spec.prompt,
        command_env=workspace.env if isinstance(workspace, LocalWorkspace) else {},
        record=record,
        lost_calls=lost,
        count_tokens=chosen_tokenizer() if spec.criteria.expect is not None else None,
    )


def _unread(recording: Recording, criteria: Criteria) -> Broken | None:
    """Return why a trial whose answer isn't known is an error; None where nothing reads the answer."""
    reads_answer = criteria.judge is not None or criteria.evaluators or criteria.expect is not None
    if not recording.unread_stream or not reads_answer:
        return None
    return Broken("transcript", recording.unread_stream)


def _warnings(evidence: TrialEvidence, recording: Recording) -> list[str]:
    """Return what a reader of the trial's figures must know, a sentence each."""
    warnings = [recording.unread_stream] if recording.unread_stream else []
    tool = evidence.tool
    names_tool = tool is not None and not tool.mcp and bool(tool.binary or tool.command_pattern)
    if names_tool and evidence.interaction.source == "none" and evidence.transcript.text.strip():
        advice = "" if recording.unread_stream else f" {recording.how_to_read or OTHERS}"
        warnings.append(f"No command was seen in this output, so tool use is unknown.{advice}")
    return warnings


def _contradictions(evidence: TrialEvidence) -> list[str]:
    """Return where the agent's stream states what evalhub's record of the tool doesn't have."""
    calls = evidence.interaction.unrecorded
    if not calls:
        return []
    return [
        f"The agent's stream states {format_count(calls, 'successful call')} of the tool that evalhub's record doesn't have. "
        "The record counts."
    ]


def _detail(
    evidence: TrialEvidence,
    evaluation: Evaluation,
    recording: Recording,
    post: tuple[PostResult, ...],
    limits: Thresholds,
    known: dict[str, Json],
) -> dict[str, Json]:
    """Return the details of a trial beside its scores, as JSON; `known` are those that no layer reads."""
    messages = error_messages(evidence.transcript, evidence.interaction)
    missing = find_not_started(evidence.transcript, evidence.tool, evidence.interaction)
    warnings = _warnings(evidence, recording)
    if missing and evidence.tool:
        warnings.append(f"No call of {evidence.tool.title} started: {missing.first}.")
    integrity = [*known.get("integrity", ()), *_contradictions(evidence)]
    return {
        **({"integrity": integrity} if integrity else {}),
        **({"warnings": warnings} if warnings else {}),
        **({"not_started": json_of(missing)} if missing else {}),
        "interaction": evidence.interaction.as_json(),
        "attempts": json_of(find_attempts(evidence.transcript, evidence.interaction.commands)),
        "diagnosis": json_of(
            diagnose(
                evidence.interaction,
                limits,
                messages,
                failed=evaluation.outcome != "pass",
                quoted=quoted_events(known.get("exposure")),
            )
        ),
        "messages": json_of(dict(islice(messages.items(), MOST_MESSAGES))),
        "tools_called": [call.name for call in calls_of_transcript(evidence.transcript)],
        "trace_summary": trace_summary(evidence.transcript),
        "composite_weights": evaluation.composite_weights,
        "scripts": [_post_json(each) for each in post],
        # The program and its stream may say the same.
        "notes": list(
            dict.fromkeys(
                (*recording.notes, *evidence.transcript.problems, *(each.note for each in post if each.note))
            )
        ),
    }


def _post_json(post: PostResult) -> dict[str, Json]:
    result = post.result
    output = (result.stdout + result.stderr)[-LONGEST_SCRIPT_OUTPUT:]
    return {
        "command": post.command,
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "output": output,
    }
