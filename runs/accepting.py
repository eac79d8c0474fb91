"""Targets files taken over into a project."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from evalhub.teams.models import Project, note
from runs.claims import sync_target_slots
from runs.models import Target
from runs.targets import TargetDefinition, read_targets
from scenarios.models import SuiteVersion


@transaction.atomic
def take_over(
    project: Project, content: bytes, file: str, *, by: Any, base_folder: str = "", accepted: bool = True
) -> tuple[Target, ...]:
    """Store the targets of a file, in place of those with the same names. Raises `ScenarioFileError`.

    Without `accepted` they are proposals that an admin has to accept; one that would replace a target is left
    alone until then.
    """
    return tuple(
        _store(project, definition, by=by, base_folder=base_folder, accepted=accepted)
        for definition in read_targets(content, file)
    )


def take_over_bundle(
    suite_version: SuiteVersion, *, by: Any, base_folder: str = "", accepted: bool = True
) -> tuple[Target, ...]:
    """Store the targets that a suite's bundle brought; none where it brought no targets file."""
    if not suite_version.targets_text:
        return ()
    content = suite_version.targets_text.encode()
    project, file = suite_version.suite.project, suite_version.targets_file
    return take_over(project, content, file, by=by, base_folder=base_folder, accepted=accepted)


def _store(
    project: Project, definition: TargetDefinition, *, by: Any, base_folder: str, accepted: bool
) -> Target:
    values = {
        "provider": definition.kind,
        "definition": dict(definition.entry),
        "base_folder": base_folder,
        "workers": definition.workers,
        "accepted": accepted,
        "changed_by": by if getattr(by, "pk", None) else None,
    }
    existing = Target.objects.filter(project=project, name=definition.name).first()
    if existing is None:
        target = Target.objects.create(project=project, name=definition.name, **values)
    elif not accepted or all(
        getattr(existing, name) == values[name] for name in ("definition", "base_folder", "accepted")
    ):
        return existing
    else:
        target = existing
        for name, value in values.items():
            setattr(target, name, value)
        target.save(update_fields=list(values))
    sync_target_slots(target)
    note(project, by, "target.change", target.name, provider=definition.kind, accepted=accepted)
    return target
