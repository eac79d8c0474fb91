"""The tables of a project's settings as CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable

from evalhub.teams.models import ApiToken, AuditEvent, Membership, Project
from evalhub.web.csv_export import Table


def member_table(project: Project, members: Iterable[Membership]) -> Table:
    """Return a project's members with their roles."""
    rows = ((each.user.get_username(), each.role, each.created) for each in members)
    return Table(f"{project.slug}-members", ("name", "role", "since"), rows)


def token_table(project: Project, tokens: Iterable[ApiToken]) -> Table:
    """Return tokens without anything that could be used as one."""
    header = ("name", "prefix", "owner", "role", "created", "last_used", "expires")
    rows = (
        (
            *(each.name, each.prefix, each.user.get_username(), each.role),
            *(each.created, each.last_used, each.expires),
        )
        for each in tokens
    )
    return Table(f"{project.slug}-tokens", header, rows)


def audit_table(project: Project, events: Iterable[AuditEvent]) -> Table:
    """Return the project's audit log, the details as JSON."""
    rows = (
        (
            *(each.at, each.user.get_username() if each.user else None, each.action, each.subject),
            json.dumps(each.detail, ensure_ascii=False, sort_keys=True),
        )
        for each in events
    )
    return Table(f"{project.slug}-audit", ("at", "by", "action", "subject", "detail"), rows)
