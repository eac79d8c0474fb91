"""Calls that a session's file took over from a session that is imported already."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from evalhub.teams.models import Project
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.sessions.copies import Known
from evaluators.transcripts.sessions.kept import KeptSession
from evaluators.transcripts.sessions.session import Trail
from runs.exchange.imports.import_sessions import help_pages, suite_slug
from runs.exchange.imports.session_files import ReadSessions
from runs.models import ImportedSession


def counted_once(read: ReadSessions, project: Project, tool: Tool) -> ReadSessions:
    """Leave out calls that count in another session, and compare failed calls with the tool's help."""
    known = _known(project, tool, read.sessions, read.trails)
    return read.without_copies(known).with_flags(help_pages(project, tool))


def _known(
    project: Project, tool: Tool, sessions: Sequence[KeptSession], trails: Sequence[Trail]
) -> dict[str, Known]:
    """Return the calls that stored sessions with the same history have, by the id of the session that is read."""
    pairs = list(zip(sessions, trails, strict=True))
    roots = {each.root for each in sessions if each.root}
    origins = {origin for trail in trails for origin in trail.forked_from}
    if not roots and not origins:
        return {}
    related = Q(session_id__in=origins) | Q(trial__detail__session__root__in=roots)
    stored = ImportedSession.objects.filter(related, suite__project=project, suite__slug=suite_slug(tool))
    rows = list(stored.values_list("session_id", "trial__detail__session"))
    found: dict[str, Known] = {}
    for own, trail in pairs:
        others = [
            about
            for id, about in rows
            if id != own.id and (id in trail.forked_from or (own.root and about.get("root") == own.root))
        ]
        calls = frozenset(key for about in others for key in about.get("copies", ()))
        if calls:
            found[own.id] = Known(calls, str(others[0].get("file", "")))
    return found
