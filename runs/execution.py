"""One trial: workspace, agent, transcript, evaluation. Nothing is stored here; see `recording`."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

from django.conf import settings

from evaluators.diagnosis import diagnose
from evaluators.evaluate import Evaluation, evaluate
from evaluators.evidence import Evidence
from evaluators.model import Transcript
from evaluators.redaction import mask_values, mask_values_in_bytes
from evaluators.transcripts import UnreadableTranscript, parse
from runs.claims import Claim
from runs.context import RunContext, fixture_of, load_run, load_scenario
from runs.models import Trial
from runs.models.trial import json_of
from runs.providers.base import Invocation, ProviderError, Recording
from runs.recording import TrialResult
from runs.trial_files import keep_files
from runs.trial_folder import TrialFolder, trial_folder
from runs.workspaces import LocalWorkspace, PostResult
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import lay_over
from scenarios.models import ScenarioVersion
from scenarios.spec import ScenarioSpec

logger = logging.getLogger(__name__)

DEFAULT_SECONDS = 300.0
"""Time limit of an agent where neither scenario, request nor target has one (that of llm-tool-test)."""
LONGEST_SCRIPT_OUTPUT = 4000


@dataclass(frozen=True)
class Task:
    """What one claim asks for."""

    claim: Claim
    key: str
    index: int
    spec: ScenarioSpec
    scenario_version: ScenarioVersion
    context: RunContext
    stopped: Callable[[], bool]

    @property
    def timeout_seconds(self) -> float:
        """The agent's time limit: the scenario's, else the request's; the target may have a tighter one."""
        limits, options = self.spec.limits, self.context.options
        return limits.timeout_seconds or options.timeout_seconds or DEFAULT_SECONDS


def load(claim: Claim, stopped: Callable[[], bool]) -> Task:
    """Return the claim's task."""
    trial = Trial.objects.select_related("scenario_version").defer("scenario_version__content").get(pk=claim.trial_id)
    spec = load_scenario(trial.scenario_version_id)
    return Task(claim, spec.key, trial.index, spec, trial.scenario_version, load_run(claim.run_id), stopped)


def execute(claim: Claim, *, stopped: Callable[[], bool]) -> TrialResult:
    """Carry out a claimed trial and return what is to be recorded; whatever goes wrong becomes its error."""
    try:
        task = load(claim, stopped)
        with trial_folder(settings.WORK_DIR, _files(task)) as folder:
            return _carry(task, folder)
    except ProviderError as error:
        if stopped():
            return TrialResult(outcome="", cancelled=True)
        return TrialResult(outcome="error", error=str(error), error_kind=error.kind)
    except Exception as error:
        logger.exception("trial %s: internal error", claim.trial_id)
        return TrialResult(
            outcome="error",
            error=f"{type(error).__name__} in evalhub itself: {error}. The details are below.",
            error_kind="internal",
            detail={"traceback": traceback.format_exc()[-8000:]},
        )


def _files(task: Task) -> tuple[FixtureFile, ...]:
    """Return what the workspace starts from: the fixture with the run's guidance laid over it."""
    context = task.context
    fixture = fixture_of(task.scenario_version)
    return lay_over(fixture, context.guidance, name=task.spec.fixture or "", names=context.fixture_names)


def _carry(task: Task, folder: TrialFolder) -> TrialResult:
    tool = task.spec.criteria.tool
    env = task.context.tool_env(tool)
    workspace = task.context.workspace(folder, env, tool)
    workspace.run_setup(task.spec.setup, timeout_seconds=task.timeout_seconds)
    script_env = _script_env(task, folder, workspace)
    invocation = _invocation(task, folder, {**script_env, **env})
    recording = masked(task.context.provider.invoke(invocation), workspace.secrets)
    if recording.cancelled or task.stopped():
        return TrialResult(outcome="", cancelled=True)
    return _judge(task, folder, replace(workspace, env={**script_env, **env}), recording)


def _script_env(task: Task, folder: TrialFolder, workspace: LocalWorkspace) -> dict[str, str]:
    """Names that scripts know, with paths as they are inside the sandbox (llm-tool-test, Scripts)."""
    inside = workspace.inside
    return {
        "LLM_TOOL_TEST_FIXTURE_DIR": inside(folder.workspace),
        "LLM_TOOL_TEST_RESULTS_DIR": inside(folder.scratch),
        "LLM_TOOL_TEST_SCENARIO": task.key,
        "LLM_TOOL_TEST_AGENT": task.context.run.target.name,
        "LLM_TOOL_TEST_MODEL": task.context.model,
        "LLM_TOOL_TEST_TRANSCRIPT": inside(folder.transcript),
        "LLM_TOOL_TEST_EVENTS": inside(folder.events),
    }


def _invocation(task: Task, folder: TrialFolder, env: dict[str, str]) -> Invocation:
    return Invocation(
        prompt=task.spec.prompt,
        key=task.key,
        workspace=folder.workspace,
        scratch=folder.scratch,
        timeout_seconds=task.timeout_seconds,
        model=task.context.model,
        env=env,
        attempt=task.claim.starts,
        trial=task.index,
        cancelled=task.stopped,
    )


def masked(recording: Recording, values: tuple[str, ...]) -> Recording:
    """Return the recording without the values of variables, which are never stored."""
    if not values:
        return recording
    return replace(
        recording,
        raw=mask_values_in_bytes(recording.raw, values),
        events=mask_values_in_bytes(recording.events, values) if recording.events else recording.events,
        answer=mask_values(recording.answer, values) if recording.answer else recording.answer,
        stderr=mask_values(recording.stderr, values),
    )


def _judge(task: Task, folder: TrialFolder, workspace: LocalWorkspace, recording: Recording) -> TrialResult:
    result = _described(recording)
    try:
        transcript = parse(recording.parser, recording.raw, recording.events)
    except UnreadableTranscript as error:
        artifacts = keep_files(folder, recording)
        detail = {"notes": list(recording.notes)}
        return replace(
            result, outcome="error", error=str(error), error_kind="transcript", artifacts=artifacts, detail=detail
        )
    folder.transcript.write_bytes(recording.raw)
    folder.events.write_bytes(recording.events or b"")
    post = workspace.run_post(task.spec.post)
    evidence = _evidence(task, workspace, recording, transcript)
    evaluation = evaluate(task.spec.criteria, evidence)
    return replace(
        result,
        outcome=evaluation.outcome,
        error=evaluation.error,
        error_kind=_error_kind(evaluation),
        evaluation=evaluation,
        transcript=transcript,
        interaction=evidence.interaction,
        completed=evidence.completed,
        usage=recording.usage or transcript.usage,
        cost_usd=recording.cost_usd if recording.cost_usd is not None else transcript.cost_usd,
        answer=evidence.answer,
        artifacts=keep_files(folder, recording),
        detail=_detail(evidence, evaluation, recording, transcript, post),
    )


def _described(recording: Recording) -> TrialResult:
    return TrialResult(
        outcome="",
        timed_out=recording.timed_out,
        exit_code=recording.exit_code,
        seconds=recording.seconds,
        usage=recording.usage,
        cost_usd=recording.cost_usd,
    )


def _evidence(
    task: Task, workspace: LocalWorkspace, recording: Recording, transcript: Transcript
) -> Evidence:
    return Evidence(
        transcript=transcript,
        workspace=workspace,
        tool=task.spec.criteria.tool,
        prompt=task.spec.prompt,
        answer=recording.answer if recording.answer is not None else transcript.answer,
        exit_code=recording.exit_code,
        timed_out=recording.timed_out,
        seconds=recording.seconds,
        usage=recording.usage or transcript.usage,
        complete=task.context.complete,
        model=task.context.model,
        script_env={name: value for name, value in workspace.env.items() if name.startswith("LLM_TOOL_TEST_")},
    )


def _error_kind(evaluation: Evaluation) -> str:
    """Return the layer that broke, as the trial's kind of error."""
    return next((score.layer for score in evaluation.scores if score.error), "")


def _detail(
    evidence: Evidence,
    evaluation: Evaluation,
    recording: Recording,
    transcript: Transcript,
    post: tuple[PostResult, ...],
) -> dict[str, object]:
    """Return what pages of one trial show beside the scores, as JSON."""
    return {
        "interaction": evidence.interaction.as_json(),
        "diagnosis": json_of(diagnose(evidence.interaction)),
        "composite_weights": evaluation.composite_weights,
        "scripts": [_post_json(each) for each in post],
        "notes": [*recording.notes, *transcript.problems, *(each.note for each in post if each.note)],
    }


def _post_json(post: PostResult) -> dict[str, object]:
    result = post.result
    said = (result.stdout + result.stderr)[-LONGEST_SCRIPT_OUTPUT:]
    return {"command": post.command, "exit_code": result.exit_code, "timed_out": result.timed_out, "output": said}
