"""Targets changed one at a time: accepted, rejected, rewritten, removed."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.access import Access
from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.models import Target
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import dump_yaml, read_target, refuse_saving
from runs.targets.hidden_programs import hidden_from, show_folders
from runs.targets.import_targets import import_targets, refuse_unknown_judges
from runs.workers.claims import follow_target
from scenarios.formats.parsed import Problem, ScenarioFileError

NEW = "new target"
"""The file that problems of an unsaved target name."""


def accepts_at_once(access: Access) -> bool:
    """Return whether somebody's targets need no acceptance: an admin's, and all of an embedded evalhub."""
    return access.may("manage") or (settings.EMBEDDED and access.may("upload"))


@transaction.atomic
def accept_target(target: Target, *, by: User | None) -> None:
    """Accept a proposal. Raises `RequestError` for a target that exists only in imported results."""
    if target.is_imported:
        raise RequestError(
            f"{target.name} exists only in imported results, so nothing can run on it. "
            "Import a targets file with an entry of this name."
        )
    if Target.objects.filter(pk=target.pk, accepted=False).update(accepted=True, changed=timezone.now()):
        follow_target(target)
        audit.append_event(target.project, by, "target.accept", target.name)


@transaction.atomic
def remove_target(target: Target, *, by: User | None) -> None:
    """Delete a target or a proposal. Raises `RequestError` if it has runs."""
    runs = target.runs.count()
    if runs:
        raise RequestError(
            f"{target.name} has {runs} run{'s' if runs > 1 else ''}, which would lose what they ran on. "
            "Leave it, or change its definition."
        )
    audit.append_event(
        target.project, by, "target.remove" if target.accepted else "target.reject", target.name
    )
    target.delete()


@transaction.atomic
def add_target(project: Project, text: str, *, by: User | None, accepted: bool = True) -> Target:
    """Store the target in a text under a new name. Raises `ScenarioFileError`."""
    definition = read_target(text.encode(), NEW)
    if Target.objects.filter(project=project, name=definition.name).exists():
        what = f"There is already a target called '{definition.name}'."
        fix = "Choose another name, or edit that target."
        raise ScenarioFileError([Problem(NEW, 1, "name", what, fix, "targets/repeated-name")])
    content = dump_yaml({"targets": [dict(definition.entry)]}).encode()
    (target,) = import_targets(project, content, NEW, by=by, accepted=accepted)
    return target


@transaction.atomic
def rewrite(target: Target, text: str, *, by: User | None) -> Target:
    """Replace a target's definition with the entry in a text. Raises `ScenarioFileError`."""
    definition = read_target(text.encode(), target.name)
    if definition.name != target.name:
        what = f"The name has to stay '{target.name}', because runs and suites refer to it."
        fix = "Import a targets file to add a target of another name."
        raise ScenarioFileError([Problem(target.name, 1, "name", what, fix, "targets/renamed")])
    refuse_unknown_judges(target.project, [definition], target.name)
    refuse_saving(definition, containment().targets, file=target.name, base=target.base_folder)
    if dict(definition.entry) != target.definition:
        target.definition = dict(definition.entry)
        target.provider = definition.kind
        target.workers = definition.workers
        target.labels = list(definition.labels)
        target.changed, target.changed_by = timezone.now(), by
        target.save(update_fields=["definition", "provider", "workers", "labels", "changed", "changed_by"])
        follow_target(target)
        shown = definition.fields.get("read_folders")
        more = {"read_folders": ", ".join(shown)} if isinstance(shown, list) else {}
        audit.append_event(target.project, by, "target.change", target.name, provider=definition.kind, **more)
    return target


@transaction.atomic
def show_program(target: Target, *, by: User | None) -> tuple[Path, ...]:
    """Let a target's commands read its program's folder; return the folders.

    Raises `RequestError` where nothing is hidden here, and where the operator doesn't allow it.
    """
    text = dump_yaml(target.definition)
    hidden = hidden_from(read_target(text.encode(), target.name), base=target.base_folder)
    if not hidden.folders:
        raise RequestError(hidden.refusal or f"The sandbox hides no file of {target.name} on this machine.")
    try:
        rewrite(target, show_folders(text, hidden.folders), by=by)
    except ScenarioFileError as error:
        raise RequestError(" ".join(each.what for each in error.problems)) from error
    return hidden.folders
