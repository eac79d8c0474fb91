"""Find imported sessions that never called their tool, and remove them with everything stored of them.

Earlier releases took other tool calls, such as `Edit` and `Read`, for the commands of a tool that was never called.
"""

from __future__ import annotations

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Concat

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.exchange.imports.import_sessions import sum_up_again
from runs.models import CommandRecord, Run, Trial
from scenarios.models import SESSIONS

BACKUPS = (
    "Backups made before still hold them. Delete those backups, or remove the sessions again after a restore."
)


class RunWithout(NamedTuple):
    """A run with sessions that never called the tool."""

    run: int
    project: str
    """The project's slug."""
    suite: str
    sessions: int


def sessions_without_tool(project: Project | None = None, run: int | None = None) -> QuerySet[Trial]:
    """Return the imported sessions without a command, or of which every command is another tool's call."""
    commands = CommandRecord.objects.filter(trial=OuterRef("pk"))
    binary = KeyTextTransform("binary", F("trial__scenario_version__content__criteria__tool"))
    # Such a call is stored as its tool's name and its input as JSON, and the name is also its subcommand. A pattern
    # may take a whole command of the tool as its subcommand.
    other = Q(line=F("subcommand")) & ~Q(line__startswith=binary)
    for begin in ("{", "[", '"'):
        other |= Q(line__startswith=Concat(F("subcommand"), Value(f" {begin}")))
    other &= ~Q(subcommand="")
    trials = Trial.objects.filter(~Exists(commands.exclude(other)), run__suite__format=SESSIONS)
    if project is not None:
        trials = trials.filter(run__project=project)
    return trials if run is None else trials.filter(run=run)


def runs_without_tool(project: Project | None = None) -> list[RunWithout]:
    """Return the runs with such sessions and how many each has, oldest first. One query."""
    rows = sessions_without_tool(project).order_by("run_id")
    grouped = rows.values_list("run", "run__project__slug", "run__suite__name").annotate(n=Count("pk"))
    return [RunWithout(*row) for row in grouped]


def remove_from(run: int, *, by: User | None) -> int:
    """Remove a run's sessions that never called the tool; return how many. One transaction, with a line in the audit log.

    Their transcripts, commands, artifacts and search entries go with them, and usage is summed up again.
    """
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).select_related("project").get(pk=run)
        keys = list(sessions_without_tool(run=run).values_list("pk", flat=True))
        if not keys:
            return 0
        Trial.objects.filter(pk__in=keys).delete()
        sum_up_again(locked)
        audit.append_event(locked.project, by, "sessions.remove", f"run {run}", sessions=len(keys))
    return len(keys)
