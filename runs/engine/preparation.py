"""Prepare a run before its trials: check target and tool, record their versions, compute the fingerprint.

The fingerprint has the inputs that a run's results depend on: runs with equal ones differ only by chance.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import Error
from django.db.models import Case, Count, F, Q, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import format_count
from evalhub.lib.storable_text import make_storable
from evaluators.redaction import mask_values
from evaluators.statistics.staleness import check_staleness
from evaluators.tool_use.tool import Tool
from runs.db.disk import CannotStore, cannot_store, check_room_for_commands, storage_guard
from runs.db.retry import is_connection_lost, retry_when_lost
from runs.db.transactions import write_transaction
from runs.engine import batches, recording
from runs.engine.captures import capture
from runs.engine.context import RunContext, load_run
from runs.engine.judges import judge_names, judge_target, judge_targets
from runs.engine.mcp.mcp_server import joined_versions, server_version
from runs.engine.tool.tool_recording import not_recorded
from runs.engine.workspace.workspace import LocalWorkspace, trial_folder
from runs.errors import ProviderError, RequestError
from runs.launch.selection import deciders_of, find_unjudged
from runs.models import Run, Target, Trial
from runs.models.run import RunState
from runs.models.trial import TrialState
from runs.results.run_rows import SHORT_HASH
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import definition_hash, hints_of, store_availability, version_of
from runs.targets.providers.registry import MODELS, TAKE_MCP, TAKE_STUBS
from runs.workers import claims, fair_share
from runs.workers.heartbeat import heartbeat
from runs.workers.worker_registry import any_judges, find_own_judge
from scenarios.formats.parsed import Fixture
from scenarios.models import ScenarioVersion
from scenarios.spec import ScenarioSpec
from scenarios.storing import joint_hash


def compute_fingerprint(context: RunContext, tool_version: str, provider_version: str) -> dict[str, Any]:
    """Return the run's fingerprint; hashes are SHA-256, empty where there is nothing to hash."""
    run = context.run
    definition = (run.target_version or run.target).definition
    rows = list(
        run.suite_version.entries.values_list(
            "scenario_version__fixture__sha256",
            "scenario_version__rubric__sha256",
            "scenario_version__judge_hash",
            "scenario_version__content__criteria__threshold",
            "scenario_version__content__fixture",
            "scenario_version__rubric__name",
        )
    )
    return {
        "suite_version": run.suite_version.number,
        "suite_sha256": run.suite_version.sha256,
        "fixture": joint_hash(row[0] for row in rows),
        "guidance": run.guidance.sha256 if run.guidance else "",
        "rubric": joint_hash(row[1] for row in rows),
        "tool_version": tool_version,
        "tool_files": context.tool_files_hash,
        **({"tool_surface": context.options.surface} if context.options.surface else {}),
        "target": run.target.name,
        "target_sha256": definition_hash(definition),
        "endpoint": str(definition.get("url") or ""),
        "provider": run.target.provider,
        "provider_version": provider_version,
        "model": context.model,
        **({"command_pattern": context.shared_pattern} if context.shared_pattern else {}),
        **_judge(context),
        **_threshold(context.options.threshold, [row[3] for row in rows]),
        "evalhub": settings.VERSION,
        "sandbox": containment().level.value,
        "staleness": assess_staleness(context),
        "names": _names(
            guidance=(file.path for file in context.guidance),
            fixture=(row[4] for row in rows if row[0]),
            rubric=(row[5] for row in rows),
            tool_surface=(
                f"{surface.server}: {format_count(len(surface.tools), 'tool')}, about {surface.tokens:,} tokens"
                for surface in context.surfaces.values()
            ),
        ),
    }


def _judge(context: RunContext) -> dict[str, str]:
    """Return the default judge; empty for none. Scenarios' own judges are part of the suite's hash."""
    first, last = judge_names(context.run, context.target, context.options)
    name = (first or last) if context.options.judge else ""
    target = judge_target(context.run, name) if name else None
    return {"judge": name, "judge_sha256": definition_hash(target.definition) if target else ""}


def _threshold(requested: float | None, scenario_thresholds: Sequence[float | None]) -> dict[str, str]:
    """Return the thresholds of the aggregate score (AgentV evaluation, Score Aggregation); empty if 1."""
    thresholds = (
        {1.0 if each is None else each for each in scenario_thresholds} if requested is None else {requested}
    )
    return {"threshold": ", ".join(f"{each:g}" for each in sorted(thresholds))} if thresholds - {1.0} else {}


def assess_staleness(context: RunContext) -> dict[str, Any]:
    """Return whether the suite's metadata matches the run's tool registry; empty without metadata."""
    metadata = context.run.suite_version.config.get("metadata")
    if not metadata:
        return {}
    registry = context.registry
    report = check_staleness(metadata, registry)
    tool = registry.tools.get(str(metadata.get("toolName"))) if registry else None
    return {
        "warnings": list(report.warnings),
        "stale": report.stale,
        "generated_hash": report.generated_hash,
        "description_hash": report.current_hash,
        "registry_size": registry.size if registry else None,
        "tool_version": tool.version if tool else None,
    }


def _names(**used: Iterable[Any]) -> dict[str, str]:
    """Return readable names of the hashed parts, comma-separated; results don't depend on them."""
    by_part = {part: sorted({str(each) for each in names if each}) for part, names in used.items()}
    return {part: ", ".join(names)[:LONGEST_NAME] for part, names in by_part.items() if names}


logger = logging.getLogger(__name__)

TOOL_CHECK_SECONDS = 30.0
_MAY_CHANGE = ("evalhub", "names", "sandbox", "staleness")
"""Parts of the fingerprint that may differ between a run and its retry."""


class NotReady(Exception):
    """The run cannot start; the message says why and what to do."""


def prepare_run(run_id: int) -> bool:
    """Prepare a run, exactly once; return whether its trials may start."""
    if storage_guard.blocking_reason():
        # The tick retries.
        return False
    token = claims.claim_run(run_id)
    return token is not None and _prepare(run_id, token)


def prepare_next(run_id: int) -> int | None:
    """Prepare the run that is next by fair share, of those for the same labels as this one.

    Return its key if its trials may start.
    """
    while not storage_guard.blocking_reason():
        following = fair_share.next_preparation(run_id)
        if following is None:
            return None
        # Another worker may have taken it meanwhile.
        if token := claims.claim_run(following):
            return following if _prepare(following, token) else None
    return None


def _prepare(run_id: int, token: str) -> bool:
    warnings: list[str] = []
    with heartbeat.holding(token, "run"):
        try:
            context = _with_captures(run_id, load_run(run_id))
            tool_version, provider_version = _check(context, warnings)
            _check_unchanged(context, tool_version, provider_version)
            batches.submit(context, token, warnings)
        except (NotReady, ProviderError, RequestError) as error:
            if problem := cannot_store(error):
                _wait_for_room(run_id, token, problem, warnings)
                return False
            logger.info("run %s cannot start: %s", run_id, error)
            recording.fail_run(run_id, token, str(error), warnings)
            return False
        except KeyboardInterrupt:
            # This worker is stopping: another worker can take the run.
            claims.release_run(run_id, token)
            raise
        except Exception as error:
            # Broad because a worker must survive any error; the run closes with it or is retried.
            if problem := cannot_store(error):
                _wait_for_room(run_id, token, problem, warnings)
                return False
            if isinstance(error, Error) and is_connection_lost(error):
                claims.release_run(run_id, token)
                raise
            logger.exception("run %s: internal error", run_id)
            recording.fail_run(run_id, token, f"{type(error).__name__} in evalhub itself: {error}.", warnings)
            return False
        return retry_when_lost(
            lambda: _start(run_id, token, context, tool_version, provider_version, warnings),
            committed=lambda: _is_started(run_id) or None,
        )


def _wait_for_room(run_id: int, token: str, problem: CannotStore, warnings: list[str]) -> None:
    """Requeue a run that can't be stored; close it after too many times."""
    logger.warning("run %s is requeued: %s", run_id, problem)
    storage_guard.note(problem)
    if not claims.requeue_run(run_id, token):
        recording.fail_run(run_id, token, f"{problem} It was tried {claims.MOST_TRIES} times.", warnings)


def _with_captures(run_id: int, context: RunContext) -> RunContext:
    """Store the captured snapshot and registry with the run; return its context with them."""
    captured = capture(context)
    if not captured:
        return context
    Run.objects.filter(pk=run_id).update(options={**context.run.options, **captured})
    return load_run(run_id)


def _check(context: RunContext, warnings: list[str]) -> tuple[str, str]:
    """Return the tool's and the provider's version. Raises `NotReady`."""
    target = context.run.target
    definition = (context.run.target_version or target).definition
    warnings += [f"{target.name}: {hint}" for hint in hints_of(definition)]
    availability = context.provider.check()
    availability = replace(availability, sentence=mask_values(availability.sentence, context.target.secrets))
    if context.run.target_version_id is None:
        # A confirmation may run an older definition, which says nothing of the current one.
        store_availability(context.run.target, availability)
    if not availability.available:
        raise NotReady(f"The target '{context.run.target.name}' cannot work: {availability.sentence}")
    if availability.tried and availability.sentence:
        warnings.append(availability.sentence)
    _check_cases(context)
    _check_judge(context, warnings)
    _check_mcp(context)
    reported, of_servers = "", dict[str, str]()
    for tool, files in context.tools:
        version = _check_tool(context, tool, files, warnings) or server_version(context, tool)
        if tool.mcp:
            of_servers.setdefault(tool.mcp.name, version)
        reported = reported or version
    if len(of_servers) > 1:
        reported = joined_versions(of_servers)
    warnings += not_recorded(context)
    if not reported and (files_version := context.tool_files_hash[:SHORT_HASH]):
        reported = f"files {files_version}"
    requested, expected = context.run.tool_version, context.options.expected_tool
    if expected is not None and (reported or requested) != expected:
        raise NotReady(
            f"This needs the tool version “{expected or 'unknown'}”, and the worker has “{reported or 'unknown'}”."
        )
    return requested or reported, availability.version


def _check_unchanged(context: RunContext, tool_version: str, provider_version: str) -> None:
    """Raise `NotReady` if a retried run would mix results of two configurations."""
    run = context.run
    if not (run.passed or run.failed):
        return
    new = compute_fingerprint(context, tool_version, provider_version)
    if changed := sorted(
        name for name in new if name not in _MAY_CHANGE and new[name] != run.fingerprint.get(name)
    ):
        raise NotReady(
            f"{', '.join(changed).replace('_', ' ')} changed since the run's other trials. Start a new run instead."
        )


def _check_mcp(context: RunContext) -> None:
    """Raise `NotReady` if the target's agent can't be given the MCP server under test."""
    named = next((tool.mcp.name for tool, _ in context.tools if tool.mcp), "")
    if named and context.target.kind not in TAKE_MCP:
        raise NotReady(
            f"The target '{context.run.target.name}' ({context.target.kind}) can't be given the MCP server '{named}'. "
            "Use a target of codex, claude_code, opencode or cli."
        )


def _check_cases(context: RunContext) -> None:
    """Raise `NotReady` if cases have stubs that the target can't take, or expect calls of tools that no model is offered."""
    target = context.target
    takes_stubs = target.kind in TAKE_STUBS or getattr(target.options, "stubs_field", None) is not None
    offers = target.kind not in MODELS or bool(context.registry and context.registry.tools)
    if takes_stubs and offers:
        return
    queued = Trial.objects.filter(run=context.run, state=TrialState.QUEUED).values("scenario_version")
    versions = ScenarioVersion.objects.filter(pk__in=queued).order_by("pk")
    specs = [ScenarioSpec.model_validate(each) for each in versions.values_list("content", flat=True)]
    stubbed = [spec.key for spec in specs if spec.stubs is not None]
    if stubbed and not takes_stubs:
        raise NotReady(
            f"The target '{context.run.target.name}' ({target.kind}) can't take stubs, and {format_count(len(stubbed), 'case')} "
            f"with stubs would be run without them ({_list_keys(stubbed)}). Run them on a model, or on an http endpoint with `stubs_field`."
        )
    routed = [] if offers else [spec.key for spec in specs if _routes(spec)]
    if routed:
        raise NotReady(
            f"A model calls no tools that it is not offered, and this run has no tool registry; "
            f"{len(routed)} of its cases expect calls ({_list_keys(routed)}). Give the registry with --tool-registry on the "
            "command line or `registry` over REST, or give the cases `stubs`."
        )


def _check_judge(context: RunContext, warnings: list[str]) -> None:
    """Raise `NotReady` if nothing could judge the queued trials and nothing else decides them."""
    run = context.run
    queued = Trial.objects.filter(run=run, state=TrialState.QUEUED).order_by()
    counts = dict(queued.values_list("scenario_version").annotate(Count("pk")))
    contents = ScenarioVersion.objects.filter(pk__in=counts).values_list("pk", "content")
    judged = [(run.target, {content["key"]: deciders_of(content)}, counts[pk]) for pk, content in contents]
    workers = find_own_judge if run.launch.held_by else any_judges
    unjudged = find_unjudged(run.project, judged, context.options, workers)
    if unjudged and unjudged.refusal:
        raise NotReady(unjudged.refusal)
    if unjudged:
        warnings.append(unjudged.warning)


def _list_keys(keys: Sequence[str]) -> str:
    return ", ".join(keys[:3]) + (", …" if len(keys) > 3 else "")


def _routes(spec: ScenarioSpec) -> bool:
    expect = spec.criteria.expect
    return expect is not None and expect.names_tools and spec.stubs is None


def _check_tool(context: RunContext, tool: Tool, files: Fixture, warnings: list[str]) -> str:
    """Return the tool's version by its version command, else by the first line of its health check.

    Both run in a scratch workspace with the fixture, which may include the tool.
    """
    if not (tool.health_check or tool.version_command):
        return ""
    with trial_folder(settings.WORK_DIR, files) as folder:
        workspace = context.workspace(folder, tool)
        health = _first_line(workspace, tool.health_check, tool) if tool.health_check else ""
        try:
            return _first_line(workspace, tool.version_command, tool) if tool.version_command else health
        except NotReady as error:
            warnings.append(str(error))
            return health


def _first_line(workspace: LocalWorkspace, command: str, tool: Tool) -> str:
    result = workspace.run(command, timeout_seconds=TOOL_CHECK_SECONDS)
    if result.exit_code != 0:
        check_room_for_commands()
        output = make_storable((result.stderr or result.stdout or result.error).strip()[:300])
        ended = "timed out" if result.timed_out else f"ended with exit code {result.exit_code}"
        raise NotReady(
            f"The check of {tool.title} failed: '{command}' {ended}. Output: {output or 'none'}. "
            "Install the tool on the worker, or fix the command in the scenario's target section."
        )
    lines = (result.stdout or result.stderr).strip().splitlines()
    return make_storable(lines[0].strip()[:200]) if lines else ""


def _start(
    run_id: int,
    token: str,
    context: RunContext,
    tool_version: str,
    provider_version: str,
    warnings: list[str],
) -> bool:
    """Let the trials start unless the run has been cancelled."""
    values = compute_fingerprint(context, tool_version, provider_version)
    stale = values["staleness"].get("warnings", [])
    unread = context.registry.warnings if context.registry else ()
    with write_transaction():
        # A budget may have been spent by other runs of the launch meanwhile.
        earlier = Run.objects.values_list("warnings", flat=True).get(pk=run_id)
        shown = list(dict.fromkeys([*earlier, *warnings, *unread, *stale, *context.warnings]))
        # A retried run that is cancelled meanwhile has results to close with.
        halts = When(Q(cancel_requested=True, started=None), then=Value(RunState.CANCELLED))
        changed = Run.objects.filter(pk=run_id, token=token, state=RunState.PREPARING).update(
            state=Case(halts, default=Value(RunState.RUNNING)),
            tool_version=tool_version,
            fingerprint=values,
            target_version=context.run.target_version or version_of(context.run.target),
            warnings=shown,
            token="",
            started=Coalesce(F("started"), Value(timezone.now())),
            finished=Case(When(cancel_requested=True, then=Value(timezone.now())), default=None),
        )
        if changed != 1:
            return False
        if not context.run.judge_versions.exists():
            context.run.judge_versions.set([version_of(target) for target in _judges(context)])
        claims.make_slots(context.run)
    # It may have been cancelled before a retry started.
    recording.close_if_done(run_id)
    return _is_started(run_id)


def _is_started(run_id: int) -> bool:
    return Run.objects.filter(pk=run_id, state=RunState.RUNNING).exists()


def _judges(context: RunContext) -> list[Target]:
    judges = context.run.suite_version.scenario_versions.values_list(
        "content__criteria__judge__model", flat=True
    )
    named = {str(name) for name in judges.distinct() if name}
    return judge_targets(context.run, context.target, context.options, named)
