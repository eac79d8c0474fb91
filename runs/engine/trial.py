"""Execute one trial, from its workspace to its result, or try a target with one prompt.

`recording` stores a trial's result; that of a try isn't stored as one.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace

from django.conf import settings
from django.contrib.auth.models import User
from django.db import Error

from evalhub.lib.storable_text import storable_json
from evalhub.teams import audit
from evalhub.teams.models import Project
from evaluators.grading.assertions import calls_of_transcript
from evaluators.grading.stub_loop import MAX_TURNS
from evaluators.model import AgentResult, Json, Transcript
from evaluators.redaction import mask_values, redact_patterns
from evaluators.transcripts import PARSERS, UnreadableTranscript
from runs.db.disk import DiskFull, cannot_store, check_room_for_commands
from runs.db.retry import is_connection_lost, outage, retry_when_lost
from runs.db.transactions import request_job, write_transaction
from runs.engine.assess import assess, parse_recording
from runs.engine.batch_answers import mask_recording
from runs.engine.context import RunContext
from runs.engine.mcp.mcp_server import shown_surface
from runs.engine.mcp.mcp_serving import serve_mcp
from runs.engine.recording import TrialResult
from runs.engine.task import Task, load_task
from runs.engine.tool.offered_tools import tools_of
from runs.engine.tool.tool_help import with_confusions
from runs.engine.tool.tool_recording import record_for, with_record
from runs.engine.workspace.safeguards import Safeguards
from runs.engine.workspace.workspace import LocalWorkspace, TrialFolder, placeholder_paths, trial_folder
from runs.errors import ProviderError
from runs.models import Job, Run, Target, TargetTry
from runs.models.run_options import RunOptions
from runs.sandbox.worker_settings import containment, variables_of
from runs.targets.agents.session_end import broken_by
from runs.targets.definitions import resolve_target
from runs.targets.entries import TargetDefinition
from runs.targets.pricing import price_recording
from runs.targets.providers.base import Invocation, PollCalls, Recording
from runs.targets.providers.registry import make_provider
from runs.workers import wakeups
from runs.workers.claims import Claim, worker_name
from scenarios.models import Suite, SuiteVersion
from scenarios.spec import ScenarioSpec

logger = logging.getLogger(__name__)

CANCELLED = TrialResult(outcome="", cancelled=True)


def execute(
    claim: Claim,
    load_context: Callable[[], RunContext],
    *,
    stopped: Callable[[], bool],
    watch: Callable[[PollCalls], None] = lambda read_calls: None,
) -> TrialResult:
    """Run a claimed trial and return its result; a failure becomes its error.

    Raises `CannotStore`: then the trial has no result and can run again.
    `load_context` returns the run's context, or raises `ProviderError` if its target cannot be used.
    `watch` is called with a function that returns the agent's latest calls.
    """
    return carry_out(
        lambda: load_task(claim, load_context(), stopped=stopped, watch=watch),
        stopped=stopped,
        name=f"trial {claim.trial_id}",
    )


def carry_out(load: Callable[[], Task], *, stopped: Callable[[], bool], name: str) -> TrialResult:
    """Run a task and return its result, as `execute` does; `name` is what the log calls it."""
    secrets: tuple[str, ...] = ()
    try:
        task = retry_when_lost(load, may_wait=outage.may_wait)
        secrets = task.secrets
        if not task.needs_folder:
            return _run_without_folder(task)
        files, bundle, _ = retry_when_lost(
            lambda: (task.files, task.bundle, task.hidden), may_wait=outage.may_wait
        )
        with trial_folder(settings.WORK_DIR, files, bundle, inside=task.spec.folder) as folder:
            return _run_in_folder(task, folder)
    except ProviderError as error:
        if stopped():
            return CANCELLED
        if problem := cannot_store(error):
            raise problem from error
        sentence = mask_values(str(error), secrets)
        return TrialResult(
            outcome="error",
            error=sentence,
            error_kind=error.kind,
            execution=AgentResult(seconds=error.seconds),
        )
    except Exception as error:
        # Broad because a lane must survive any error; what is not raised again is stored as the trial's error.
        if problem := cannot_store(error):
            raise problem from error
        if isinstance(error, Error) and is_connection_lost(error):
            # Nothing can be recorded: the trial is requeued when its lease expires.
            raise
        logger.exception("%s: internal error", name)
        sentence = f"{type(error).__name__} in evalhub itself: {error}. Report it with the details below."
        return TrialResult(
            outcome="error",
            error=mask_values(sentence, secrets),
            error_kind="internal",
            detail={"traceback": mask_values(traceback.format_exc()[-8000:], secrets)},
        )


def _run_in_folder(task: Task, folder: TrialFolder) -> TrialResult:
    tool = task.spec.criteria.tool
    recording, workspace, safeguards = run_agent_in_workspace(task, folder)
    check_room_for_commands()
    if recording.cancelled or task.stopped():
        return CANCELLED
    folder.lay_judging(task.judging_files)
    result = assess(task, recording, folder, workspace, safeguards)
    if result.outcome != "pass":
        # Gates and scripts write, too.
        check_room_for_commands()
    return with_confusions(result, task.context, tool, task.files, shown_surface(task, recording))


def run_agent_in_workspace(task: Task, folder: TrialFolder) -> tuple[Recording, LocalWorkspace, Safeguards]:
    """Prepare the workspace; return the target's recording without secrets, with workspace and safeguards.

    Raises `ProviderError`.
    """
    tool = task.spec.criteria.tool
    workspace = task.context.workspace(folder, tool, scenario=task.spec.key)
    safeguards = Safeguards.after_setup(task, folder, workspace)
    tool_env = {name: workspace.env[name] for name in (tool.env if tool else ())}
    with serve_mcp(task, folder, workspace, tool_env) as served:
        record, why_not = record_for(task, folder, workspace, workspace.env)
        invocation = task.invocation(folder, {**workspace.env, **(served.env if served else {})})
        invocation = replace(invocation, mcp=served.endpoint if served else None, record=record)
        if served:
            invocation = replace(invocation, cancelled=lambda: task.stopped() or bool(served.disagreement()))
        try:
            recording = mask_recording(ask_target(task, invocation), workspace.secrets)
        finally:
            # Whatever became of the agent, it had no tool.
            if served:
                served.check_agreement()
        if record:
            recording = with_record(recording, record, workspace.secrets)
        elif why_not:
            recording = replace(recording, notes=(*recording.notes, why_not))
        return served.with_record(recording) if served else recording, workspace, safeguards


def _run_without_folder(task: Task) -> TrialResult:
    """Run a trial that needs no directory and only has an answer."""
    recording = ask_target(task, task.invocation(placeholder_paths(settings.WORK_DIR), {}))
    if recording.cancelled or task.stopped():
        return CANCELLED
    return assess(task, mask_recording(recording, task.secrets))


def ask_target(task: Task, invocation: Invocation) -> Recording:
    """Return the target's recording. Raises `ProviderError` if it could not do the task.

    An eval case that takes too long fails (tool-forge eval runner, timeoutMs), on any target.
    """
    try:
        return _invoke(task, invocation)
    except ProviderError as error:
        if error.kind != "timeout" or task.criteria.expect is None:
            raise
        return Recording(timed_out=True, seconds=task.timeout_seconds, notes=(str(error),))


def _invoke(task: Task, invocation: Invocation) -> Recording:
    """Let a model with stubs converse with them, and any other target do the task."""
    if task.spec.stubs is None or task.executes_tools:
        return task.context.provider.invoke(invocation)
    # Imported here because few trials converse and a model's code loads slowly.
    from runs.engine.workspace.stubs import converse
    from runs.targets.language_models.language_model import stub_model

    tools = tools_of(task.context.registry, task.spec.stubs)
    model = stub_model(task.context.target, tools, invocation, task.context.outbound)
    return converse(invocation, model, max_turns=task.spec.limits.max_turns or MAX_TURNS)


SECONDS = 120.0
"""Time limit of a try; the target's own may be lower."""
LONGEST_OUTPUT = 20_000
"""Characters that are kept of the prompt, and of the output: the beginning and the end."""
LONGEST_ANSWER = 5_000
PROMPT = "Create a file hello.txt that says hello, then tell me that it is done."
STREAMS = ("codex", "claude_code", "opencode", "otel", "events")
"""Formats that plain output is compared with."""


def request_try(
    project: Project,
    definition: TargetDefinition,
    prompt: str,
    *,
    by: User,
    base_folder: str,
) -> TargetTry:
    """Store a request to try a definition and wake a worker."""
    with write_transaction():
        row = TargetTry.objects.create(
            project=project,
            by=by,
            name=definition.name,
            definition=dict(definition.entry),
            base_folder=base_folder,
            prompt=prompt[:LONGEST_OUTPUT],
        )
        expires = row.created + row.PATIENCE
        job = request_job(Job.Kind.TRY, row.pk, labels=definition.labels, expires=expires)
        audit.append_event(project, by, "target.try", definition.name, provider=definition.kind)
    wakeups.wake_for_job(job)
    return row


def try_target(job: Job) -> None:
    """Try a definition on this machine and store what came back."""
    asked = TargetTry.objects.filter(pk=job.subject, result__isnull=True)
    row = asked.select_related("project").first()
    if row is None:
        return
    asked.update(worker=worker_name())
    result = json.loads(storable_json(_result(row)))
    retry_when_lost(lambda: asked.update(result=result))


def _result(row: TargetTry) -> dict[str, Json]:
    """Return what a try found; every error is a sentence of it."""
    secrets: tuple[str, ...] = ()
    try:
        context = _context(row)
        secrets = context.target.secrets
        availability = context.provider.check()
        if not availability.available:
            raise ProviderError(availability.sentence, kind="start")
        recording = _recording(context, row.prompt)
        check_room_for_commands()
    except (ProviderError, DiskFull) as error:
        kind = error.kind if isinstance(error, ProviderError) else "disk"
        return {"error": mask_values(str(error), secrets), "error_kind": kind}
    except Exception as error:
        # Broad because somebody waits for the result and the worker must go on.
        logger.exception("try of %s: internal error", row.name)
        sentence = f"{type(error).__name__} in evalhub itself: {error}."
        return {"error": mask_values(sentence, secrets), "error_kind": "internal"}
    return _describe_recording(recording, context) | {"version": recording.version or availability.version}


def _context(row: TargetTry) -> RunContext:
    """Return the context of a run that is never stored. Raises `ProviderError`."""
    target = Target(
        project=row.project, name=row.name, definition=row.definition, base_folder=row.base_folder
    )
    variables = variables_of(row.project)
    resolved = resolve_target(target, variables)
    version = SuiteVersion(suite=Suite(project=row.project, name="Try"))
    return RunContext(
        run=Run(project=row.project, target=target, suite_version=version),
        options=RunOptions(timeout_seconds=SECONDS),
        target=resolved,
        provider=make_provider(resolved, containment().for_target(resolved.options)),
        variables=variables,
        guidance=(),
        fixture_names=frozenset(),
        keeps_files=False,
    )


def _recording(context: RunContext, prompt: str) -> Recording:
    claim = Claim(trial_id=0, run_id=0, token="", starts=0)
    spec = ScenarioSpec(key="try", prompt=prompt)
    task = Task(claim, spec, lambda: (), context, lambda: False, lambda look: None)
    with trial_folder(settings.WORK_DIR, ()) as folder:
        return run_agent_in_workspace(task, folder)[0]


def _describe_recording(recording: Recording, context: RunContext) -> dict[str, Json]:
    """Return a recording's output and what its reader recognised."""
    described: dict[str, Json] = {
        "output": _cut(recording.raw.decode("utf-8", "replace"), LONGEST_OUTPUT),
        "stderr": _cut(recording.stderr, LONGEST_ANSWER),
        "exit_code": recording.exit_code,
        "timed_out": recording.timed_out,
        "seconds": recording.seconds,
        "format": recording.parser,
    }
    try:
        transcript = parse_recording(recording)
    except UnreadableTranscript as error:
        return {**described, "error": str(error), "error_kind": "transcript", "notes": list(recording.notes)}
    if broken := broken_by(recording):
        described |= {"error": broken.sentence, "error_kind": broken.kind}
    cost = price_recording(recording, transcript, context.target, context.model)
    usage = recording.usage or transcript.usage
    calls = [call.name for call in calls_of_transcript(transcript)]
    answer = recording.answer if recording.answer is not None else transcript.answer
    reported = cost.cost_usd
    return {
        **described,
        "source": transcript.source,
        "calls": calls[:100],
        "call_count": len(calls),
        "answer": _cut(answer, LONGEST_ANSWER),
        "tokens_in": usage.input if usage else None,
        "tokens_out": usage.known_output if usage else None,
        "cost_usd": reported,
        "notes": [*cost.notes, *transcript.problems, *_hints(recording, transcript)],
    }


def _hints(recording: Recording, transcript: Transcript) -> Iterator[str]:
    """Yield what to change where plain output contains a known stream, or a command reports no calls."""
    if recording.parser != "plain_text" or transcript.source == "events":
        return
    for name in STREAMS:
        try:
            calls = len(calls_of_transcript(PARSERS[name](recording.raw)))
        except UnreadableTranscript:
            continue
        if calls:
            write = (
                "write it to {EVENTS_FILE}" if name == "events" else f"use the provider that reads `{name}`"
            )
            yield f"The output looks like the format `{name}` with {calls} tool calls. To have them counted, {write}."
            return
    yield "Only text was recognised. Commands are found in it by the suite's pattern, or write events to {EVENTS_FILE}."


def _cut(text: str, longest: int) -> str:
    """Return a text redacted, and of a long one its beginning and end."""
    text = redact_patterns(text)
    half = longest // 2
    left_out = len(text) - 2 * half
    return text if left_out <= 0 else f"{text[:half]}\n… {left_out:,} characters …\n{text[-half:]}"
