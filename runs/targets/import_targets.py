"""Imports targets files into a project."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams import audit
from evalhub.teams.judge_models import judge_problem
from evalhub.teams.models import Project
from runs.models import Target
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import hints_of_file, read_targets, refuse_saving
from runs.targets.entries import TargetDefinition, find_reference
from runs.workers.claims import follow_target
from scenarios.formats.parsed import Problem, ScenarioFileError
from scenarios.models import SuiteVersion


@transaction.atomic
def import_targets(
    project: Project,
    content: bytes,
    file: str,
    *,
    by: User | None,
    base_folder: str = "",
    accepted: bool = True,
) -> tuple[Target, ...]:
    """Store the targets of a file, replacing those with the same names. Raises `ScenarioFileError`.

    Without `accepted` they are proposals that an admin has to accept; a target of the same name stays unchanged
    until then.
    """
    definitions = read_targets(content, file)
    refuse_unknown_judges(project, definitions, file)
    for definition in definitions:
        refuse_saving(definition, containment().targets, file=file, base=base_folder)
    return tuple(
        _store(project, definition, by=by, base_folder=base_folder, accepted=accepted)
        for definition in definitions
    )


def refuse_unknown_judges(project: Project, definitions: Sequence[TargetDefinition], file: str) -> None:
    """Raise `ScenarioFileError` if a target's judge is neither a target, of the file or stored, nor a model."""
    named = [each for each in definitions if each.judge_target and not find_reference(each.judge_target)]
    if not named:
        return
    targets = {each.name for each in definitions}
    targets.update(Target.objects.filter(project=project).values_list("name", flat=True))
    problems = [
        Problem(
            file,
            dict(each.lines).get("judge_target", each.line),
            "judge_target",
            problem,
            "Correct the name.",
            "targets/unknown-judge",
        )
        for each in named
        if (problem := judge_problem(each.judge_target, targets))
    ]
    if problems:
        raise ScenarioFileError(problems)


def import_bundle_targets(
    suite_version: SuiteVersion, *, by: User | None, base_folder: str = "", accepted: bool = True
) -> tuple[Target, ...]:
    """Store the targets in a suite's bundle; return none if it has no targets file."""
    if not suite_version.targets_text:
        return ()
    content = suite_version.targets_text.encode()
    project, file = suite_version.suite.project, suite_version.targets_file
    return import_targets(project, content, file, by=by, base_folder=base_folder, accepted=accepted)


@dataclass(frozen=True)
class UploadedTargets:
    """The targets in an upload, or the problems of their file; the suites are stored either way."""

    targets: tuple[Target, ...] = ()
    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()
    """Fields that the targets ignore."""


def import_uploaded_targets(
    versions: Iterable[SuiteVersion], *, by: User | None, base_folder: str = "", accepted: bool = True
) -> UploadedTargets:
    """Store the targets in the bundle of these suite versions; each version has the same targets file."""
    version = next((each for each in versions if each.targets_text), None)
    if version is None:
        return UploadedTargets()
    try:
        stored = import_bundle_targets(version, by=by, base_folder=base_folder, accepted=accepted)
        hints = hints_of_file(version.targets_text.encode(), version.targets_file)
        return UploadedTargets(stored, hints=hints)
    except ScenarioFileError as error:
        return UploadedTargets(problems=error.problems)


def folder_on_disk(path: Path, targets_file: str) -> str:
    """Return the folder that relative paths of a targets file start from; empty within an archive."""
    file = (path if path.is_dir() else path.parent) / targets_file
    return str(file.resolve().parent) if file.is_file() else ""


def _store(
    project: Project, definition: TargetDefinition, *, by: User | None, base_folder: str, accepted: bool
) -> Target:
    values = {
        "provider": definition.kind,
        "definition": dict(definition.entry),
        "base_folder": base_folder,
        "workers": definition.workers,
        "labels": list(definition.labels),
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
    follow_target(target)
    audit.append_event(project, by, "target.change", target.name, provider=definition.kind, accepted=accepted)
    return target
