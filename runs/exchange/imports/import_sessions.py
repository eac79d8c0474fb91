"""Store people's sessions as a closed run: layer 1 of real use, without gates and outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from msgspec import structs

from evalhub.lib.limits import LONGEST_NAME
from evalhub.teams import audit
from evalhub.teams.models import Project
from evaluators.grading.costs import TrialCost, usage_parts
from evaluators.grading.evaluate import Criteria
from evaluators.model import plausible_cost
from evaluators.patterns import PatternError
from evaluators.redaction import redact_patterns
from evaluators.tool_use.attempts import find_attempts
from evaluators.tool_use.diagnosis import diagnose, error_messages
from evaluators.tool_use.flag_confusion import HelpPage, parse_help
from evaluators.tool_use.interaction import RULES_VERSION, compute_metrics, score_interaction, without_rates
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import make_matcher
from evaluators.tool_use.unknown_launchers import describe_launchers
from evaluators.transcripts.sessions.kept import KeptSession, Known
from evaluators.transcripts.sessions.session import Trail, parse_time
from evaluators.transcripts.sessions.written_once import KEY as MESSAGE_KEY
from runs.db import statements
from runs.errors import RequestError
from runs.exchange.imports.session_files import ReadSessions
from runs.models import ImportedSession, Launch, Run, Target, ToolHelp, Trial
from runs.models.run import RunState, Trigger
from runs.models.target import IMPORTED
from runs.models.trial import TrialState, command_row, json_of, scores_json
from runs.results.rollups import write_rollups
from runs.results.trial_rows import TrialParts, insert_trials
from runs.targets.providers.prices import REPORTED
from scenarios.formats.parsed import ParsedSuite
from scenarios.imports import slug_of, store_suite
from scenarios.models import SESSIONS, ScenarioVersion, Suite
from scenarios.spec import ScenarioSpec


def counted_once(read: ReadSessions, project: Project, tool: Tool) -> ReadSessions:
    """Leave out calls that count in another session, and compare failed calls with the tool's help."""
    rows = _find_related(project, tool, read.sessions, read.trails)
    known = _known_calls(rows, read.sessions, read.trails)
    read.problems += describe_launchers(read.launchers, tool)
    counted = read.without_copies(known).with_flags(help_pages(project, tool))
    stored = {id: frozenset(about.get("copies", ())) for id, about in rows}
    return counted.without_parts_of(stored)


def _find_related(
    project: Project, tool: Tool, sessions: Sequence[KeptSession], trails: Sequence[Trail]
) -> list[tuple[str, dict[str, Any]]]:
    """Return id and facts of the stored sessions with the same history as one that is read, or a part of it."""
    roots = {each.root for each in sessions if each.root}
    origins = {origin for trail in trails for origin in trail.forked_from}
    if not roots and not origins:
        return []
    parts = {_id(each) for each in sessions if each.copies}
    related = Q(session_id__in=origins | parts) | Q(trial__detail__session__root__in=roots)
    stored = ImportedSession.objects.filter(related, suite__project=project, suite__slug=suite_slug(tool))
    return list(stored.values_list("session_id", "trial__detail__session"))


def _known_calls(
    rows: Sequence[tuple[str, dict[str, Any]]], sessions: Sequence[KeptSession], trails: Sequence[Trail]
) -> dict[str, Known]:
    """Return the calls that stored sessions with the same history have, by the id of the session that is read."""
    pairs = list(zip(sessions, trails, strict=True))
    known: dict[str, Known] = {}
    for session, trail in pairs:
        others = [
            about
            for id, about in rows
            if id != session.id
            and (id in trail.forked_from or (session.root and about.get("root") == session.root))
        ]
        calls = frozenset(key for about in others for key in about.get("copies", ()))
        messages = frozenset(key for about in others for key in _message_keys(about))
        if calls or messages:
            known[session.id] = Known(calls, messages, str(others[0].get("file", "")))
    return known


def _message_keys(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of a stored session's messages, which are kept as one text."""
    text = str(about.get("messages", ""))
    yield from (text[at : at + MESSAGE_KEY] for at in range(0, len(text), MESSAGE_KEY))


KEY = "sessions"
"""The key of the suite's only scenario, and the name of the target."""
MOST_WARNINGS = 20


@dataclass(frozen=True)
class SortedSessions:
    """Sessions to import, each once."""

    new: tuple[KeptSession, ...] = ()
    continued: tuple[KeptSession, ...] = ()
    """Imported before, and longer now or counted by older rules: they replace what is stored."""
    known: int = 0
    """Already imported, or an earlier copy of what was."""

    @property
    def to_store(self) -> tuple[KeptSession, ...]:
        return (*self.new, *self.continued)


def session_tool(binary: str, pattern: str = "") -> Tool:
    """Return the tool whose commands are sought. Raises `RequestError`."""
    tool = Tool(binary=binary.strip(), command_pattern=pattern.strip())
    try:
        matching = make_matcher(tool.binary, tool.command_pattern)
    except PatternError as error:
        raise RequestError(f"The pattern is not usable: {error}") from error
    if matching is None or not tool.binary:
        raise RequestError("Name the tool whose commands to look for, such as mytool.")
    return tool


def help_pages(project: Project, tool: Tool) -> dict[str, HelpPage]:
    """Return the tool's stored help pages by subcommand, of the newest version that has each."""
    same = Q(binary=tool.binary) | Q(binary__endswith="/" + tool.binary)
    rows = ToolHelp.objects.filter(same, project=project).order_by("pk").values_list("subcommand", "text")
    return {name: parse_help(text) for name, text in rows}


def sort_sessions(project: Project, tool: Tool, sessions: Iterable[KeptSession]) -> SortedSessions:
    """Return which sessions are new, continued or already imported. One query."""
    by_id: dict[str, KeptSession] = {}
    for session in sessions:
        before = by_id.get(_id(session))
        if before is None or len(before.commands) < len(session.commands):
            by_id[_id(session)] = session
    stored = ImportedSession.objects.filter(suite__project=project, suite__slug=suite_slug(tool))
    rows = stored.values_list("session_id", "sha256", "trial__finished", "trial__detail__interaction__rules")
    known = {id: stored_as for id, *stored_as in rows}
    new = tuple(each for id, each in by_id.items() if id not in known)
    continued = tuple(each for id, each in by_id.items() if id in known and _is_continued(each, *known[id]))
    return SortedSessions(new, continued, len(by_id) - len(new) - len(continued))


def _is_continued(session: KeptSession, sha256: str, finished: datetime | None, rules: int | None) -> bool:
    """Return whether a session differs from what is stored of it or counts by newer rules, and isn't an earlier copy."""
    moment = parse_time(session.finished)
    differs = session.sha256 != sha256 or rules != RULES_VERSION
    return differs and not (moment and finished and moment < finished)


@transaction.atomic
def store_sessions(
    project: Project,
    tool: Tool,
    sessions: Iterable[KeptSession],
    problems: Sequence[str] = (),
    *,
    by: User | None,
) -> tuple[Run | None, SortedSessions]:
    """Store the sessions that are new or continued as one closed run; None without any.

    Raises `RequestError` if the name of the suite is taken.
    """
    # A concurrent import of the same sessions waits; rows that refer to the project don't.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    sorted_sessions = sort_sessions(project, tool, sessions)
    if not sorted_sessions.to_store:
        return None, sorted_sessions
    version = _version(project, tool, by)
    run = _store_run(project, version, sorted_sessions, problems, by)
    _forget(version.scenario.suite, sorted_sessions.continued)
    _store_trials(run, version, sorted_sessions.to_store)
    _store_sums(run)
    write_rollups(run, is_new=True)
    audit.append_event(project, by, "sessions.import", tool.binary, run=run.pk, sessions=run.trials)
    return run, sorted_sessions


def suite_slug(tool: Tool) -> str:
    """Return the slug of the suite with a tool's sessions."""
    return slug_of(_suite(tool))


def _suite(tool: Tool) -> ParsedSuite:
    criteria = Criteria(tool=tool)
    spec = ScenarioSpec(
        key=KEY, description=f"People's sessions with {tool.binary}.", prompt="", criteria=criteria
    )
    return ParsedSuite(f"Sessions of {tool.binary}", SESSIONS, (spec,))


def _version(project: Project, tool: Tool, by: User | None) -> ScenarioVersion:
    parsed = _suite(tool)
    taken = Suite.objects.filter(project=project, slug=slug_of(parsed)).exclude(format=SESSIONS).first()
    if taken:
        raise RequestError(
            f"The suite {taken.slug} already has scenarios. Rename it in its files and upload it again."
        )
    stored = store_suite(parsed, project, by=by).version
    return stored.scenario_versions.select_related("scenario__suite").get()


def _store_run(
    project: Project,
    version: ScenarioVersion,
    sorted_sessions: SortedSessions,
    problems: Sequence[str],
    by: User | None,
) -> Run:
    sessions = sorted_sessions.to_store
    suite = version.scenario.suite
    launch = Launch.objects.create(
        project=project, by=by, trigger=Trigger.IMPORT, request={"sessions": len(sessions)}
    )
    target, _ = Target.objects.get_or_create(
        project=project, name=KEY, defaults={"provider": IMPORTED, "definition": {}, "accepted": False}
    )
    moments = (parse_time(time) for session in sessions for time in (session.started, session.finished))
    last = max(filter(None, moments), default=timezone.now())
    models, agents = {each.model for each in sessions}, sorted({each.agent for each in sessions})
    left = len(problems) - MOST_WARNINGS
    return Run.objects.create(
        project=project,
        launch=launch,
        suite_version=version.suite_versions.get(),
        suite=suite,
        target=target,
        model=next(iter(models))[:200] if len(models) == 1 else "",
        state=RunState.FINISHED,
        fingerprint={"target": KEY, "provider": IMPORTED, "agents": agents},
        warnings=[
            *map(redact_patterns, problems[:MOST_WARNINGS]),
            *([f"{left} more problems."] if left > 0 else []),
        ],
        trials=len(sessions),
        by=by,
        trigger=Trigger.IMPORT,
        # The time between people's sessions isn't a duration of anything.
        started=last,
        finished=last,
    )


def _forget(suite: Suite, continued: Sequence[KeptSession]) -> None:
    """Delete the earlier parts of continued sessions, and sum up their runs again."""
    ids = [_id(each) for each in continued]
    old = Trial.objects.filter(
        pk__in=ImportedSession.objects.filter(suite=suite, session_id__in=ids).values("trial")
    )
    keys = list(old.values_list("pk", flat=True))
    runs = list(Run.objects.filter(trial_set__in=keys).distinct())
    Trial.objects.filter(pk__in=keys).delete()
    for run in runs:
        _store_sums(run)
        write_rollups(run)


def _store_sums(run: Run) -> None:
    """Count the trials, tokens and costs of a run's sessions."""
    sums = run.trial_set.aggregate(
        trials=Count("pk"),
        cost_usd=Sum("cost_usd"),
        tokens_in=Coalesce(Sum("tokens_in"), 0),
        tokens_out=Coalesce(Sum("tokens_out"), 0),
    )
    for name, value in sums.items():
        setattr(run, name, value)
    run.save(update_fields=sums)


def _store_trials(run: Run, version: ScenarioVersion, sessions: Sequence[KeptSession]) -> None:
    rows = [
        (
            _row(version, session, position),
            TrialParts(
                transcript=session.transcript,
                answer=session.transcript.answer,
                commands=[command_row(0, command) for command in session.commands],
            ),
        )
        for position, session in enumerate(sessions)
    ]
    keys = insert_trials(run, rows)
    imported = [
        {"suite": run.suite_id, "session_id": _id(session), "sha256": session.sha256, "trial": key}
        for key, session in zip(keys, sessions, strict=True)
    ]
    statements.insert(ImportedSession, imported)


def _row(version: ScenarioVersion, session: KeptSession, position: int) -> dict[str, Any]:
    counted = compute_metrics(session.commands, source="events", completed=False)
    interaction = structs.replace(
        counted if not session.unread else without_rates(counted),
        not_run=session.not_run,
        mentioned=session.mentioned,
        unread=session.unread,
    )
    interaction_scores = (score for score in score_interaction(interaction) if score.name != "completed")
    measured = (*interaction_scores, *session.wasted)
    usage, cost = session.transcript.usage, plausible_cost(session.transcript.cost_usd)
    paid = {"cost": json_of(TrialCost(reported=cost)), "price_source": REPORTED} if cost is not None else {}
    messages = error_messages(session.transcript, interaction)
    return {
        "scenario_version": version.pk,
        "scenario": version.scenario_id,
        "index": position,
        "position": position,
        "state": TrialState.FINISHED,
        "answer": session.transcript.answer,
        "cost_usd": cost,
        "tokens_in": usage.input if usage else None,
        "tokens_out": usage.output if usage else None,
        "scores": scores_json(measured),
        "detail": {
            "interaction": interaction.as_json(),
            "attempts": json_of(find_attempts(session.transcript, session.commands)),
            "diagnosis": json_of(diagnose(interaction, messages=messages)),
            "messages": json_of(messages),
            "flags": json_of(session.flags),
            **({"usage": usage_parts(usage)} if usage else {}),
            **paid,
            "session": {
                "id": session.id,
                "agent": session.agent,
                "file": session.file,
                "model": session.model,
                "whole": session.is_whole,
                "root": session.root,
                "copies": list(session.copies),
                "messages": "".join(session.messages),
            },
        },
        "started": parse_time(session.started),
        "finished": parse_time(session.finished),
    }


def _id(session: KeptSession) -> str:
    return session.id[:LONGEST_NAME]
