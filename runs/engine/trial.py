"""Executes one trial, from its workspace to its result. `recording` stores it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import replace

from django.conf import settings
from django.db import Error

from evaluators.grading.stub_loop import MAX_TURNS
from evaluators.model import Execution
from evaluators.redaction import mask_values
from runs.db.disk import cannot_store, check_room_for_commands
from runs.db.outage import outage
from runs.db.retry import is_connection_lost, retry_when_lost
from runs.engine.assess import assess
from runs.engine.batch_answers import mask_recording
from runs.engine.context import RunContext
from runs.engine.mcp.mcp_server import shown_surface
from runs.engine.mcp.mcp_serving import serve_mcp
from runs.engine.task import Task, load_task
from runs.engine.tool.offered_tools import tools_of
from runs.engine.tool.tool_help import with_confusions
from runs.engine.tool.tool_recording import record_for, with_record
from runs.engine.trial_result import TrialResult
from runs.engine.workspace.safeguards import Safeguards
from runs.engine.workspace.trial_folder import TrialFolder, placeholder_paths, trial_folder
from runs.engine.workspace.workspace import LocalWorkspace
from runs.errors import ProviderError
from runs.targets.providers.base import Invocation, PollCalls, Recording
from runs.workers.claims import Claim

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
            outcome="error", error=sentence, error_kind=error.kind, execution=Execution(seconds=error.seconds)
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
