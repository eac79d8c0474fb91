"""Read targets files, resolve their variables, check their paths, and check targets on a worker.

A definition is stored as written: `${{ VAR }}` replaces an entire value and is resolved on the worker when a trial
runs, from the variables that the project may use. Secrets are never stored: a field that needs one must be such a
reference (AgentV, Provider Integration). Paths are checked when a target is saved and again when it is used. A
check is requested on a page and done by a worker, because the web process runs no commands.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from django.contrib.auth.models import User
from django.utils import timezone
from pydantic import ValidationError

from evalhub.lib.storable_text import make_storable
from evalhub.teams import audit
from evaluators.model import Json
from evaluators.redaction import mask_values
from runs.db.retry import retry_when_lost
from runs.db.transactions import request_job, write_transaction
from runs.errors import ProviderError
from runs.models import Job, Target, TargetCheck, TargetVersion
from runs.models.price import prices_of
from runs.sandbox.target_roots import PathRefused, TargetRoots, Use, refuse_climbing
from runs.sandbox.worker_settings import containment, variables_of
from runs.targets.entries import TargetDefinition, TargetEntry, find_reference, validation_message
from runs.targets.providers.base import Availability
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.registry import MODELS, make_provider
from runs.workers import wakeups
from scenarios.formats.parsed import (
    Location,
    PositionedDocument,
    Positions,
    Problem,
    ScenarioFileError,
    line_of,
)
from scenarios.reading import read_yaml_document
from scenarios.storing import content_hash


def refuse_saving(definition: TargetDefinition, roots: TargetRoots, *, file: str, base: str) -> None:
    """Raise `ScenarioFileError` for every forbidden path; variables are checked at use."""
    problems = [
        Problem(
            file=file,
            line=dict(definition.lines).get(field, definition.line),
            where=f"{definition.name}.{field}",
            what=message,
            id="targets/path",
        )
        for field, message in _find_refused(definition, {}, roots, base)
    ]
    if problems:
        raise ScenarioFileError(problems)


def refuse_using(
    definition: TargetDefinition, variables: Mapping[str, str], roots: TargetRoots, *, base: str
) -> None:
    """Raise `ProviderError` for the first forbidden path: links may have changed since it was saved."""
    for field, message in _find_refused(definition, variables, roots, base):
        raise ProviderError(
            f"The target '{definition.name}' cannot be used: {field}: {message}", kind="configuration"
        )


def _find_refused(
    definition: TargetDefinition, variables: Mapping[str, str], roots: TargetRoots, base: str
) -> Iterator[tuple[str, str]]:
    for field, use in definition.options.path_fields.items():
        for path in _paths(definition.fields.get(field), variables):
            try:
                _check(path, use, roots, base, free=field in definition.options.starts_in_workspace)
            except PathRefused as error:
                yield field, str(error)
    health = definition.fields.get("healthcheck")
    if isinstance(health, Mapping):
        for path in _paths(health.get("cwd"), variables):
            try:
                _check(path, Use.WORK, roots, base, free=True)
            except PathRefused as error:
                yield "healthcheck", str(error)


def _check(path: str, use: Use, roots: TargetRoots, base: str, *, free: bool) -> None:
    if use is Use.RUN and "/" not in path:
        return  # a name on PATH
    if free and not base and not Path(path).is_absolute():
        refuse_climbing(path)
    else:
        roots.place(path, use, base=base)


def _paths(value: Json, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts of a field, with known variables resolved."""
    many = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else (value,)
    for text in many:
        name = find_reference(text)
        value_of_name = variables.get(name, "").strip() if name else text
        if isinstance(value_of_name, str) and value_of_name:
            yield value_of_name


NO_RESULT = frozenset(("name", "workers", "labels"))
"""Fields that no result depends on: the name, the number of parallel trials and the labels of the worker."""


def read_targets(content: bytes, file: str) -> tuple[TargetDefinition, ...]:
    """Return the targets of a file. Raises `ScenarioFileError` with every error."""
    document = read_yaml_document(file, content)
    entries = document.value.get("targets") if isinstance(document.value, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ScenarioFileError(
            [
                document.problem(
                    (),
                    "The file has no list `targets`.",
                    fix="Write `targets:` and under it one entry with `name` and `provider` for each target.",
                    id="targets/none",
                )
            ]
        )
    readers = [TargetEntry(document, ("targets", index), entry) for index, entry in enumerate(entries)]
    problems = [problem for reader in readers for problem in reader.problems()]
    problems += _find_repeated(document, entries)
    if refused := [problem for problem in problems if not problem.lint]:
        raise ScenarioFileError(refused)
    return tuple(reader.definition() for reader in readers)


def hints_of_file(content: bytes, file: str) -> tuple[Problem, ...]:
    """Return the lints of a targets file without errors: fields that its targets ignore."""
    return tuple(lint for definition in read_targets(content, file) for lint in definition.lints)


def hints_of(entry: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the lints of a stored entry, one sentence each; empty if the entry is no longer valid."""
    try:
        lints = define(entry).lints
    except ScenarioFileError:
        return ()
    return tuple(f"{lint.what} It is ignored. {lint.fix}" for lint in lints)


def read_target(content: bytes, file: str) -> TargetDefinition:
    """Return the only target in a text. Raises `ScenarioFileError` with every error."""
    document = read_yaml_document(file, content)
    if not isinstance(document.value, dict):
        sentence, fix = "This describes no target.", "Write `name`, `provider` and the provider's own fields."
        raise ScenarioFileError([document.problem((), sentence, fix=fix, id="targets/none")])
    entry = TargetEntry(document, (), document.value)
    if refused := [problem for problem in entry.problems() if not problem.lint]:
        raise ScenarioFileError(refused)
    return entry.definition()


def dump_yaml(entry: Mapping[str, Json]) -> str:
    """Return an entry as YAML."""
    return yaml.safe_dump(dict(entry), sort_keys=False, allow_unicode=True, width=100)


def define(entry: Mapping[str, Json], *, file: str = "target") -> TargetDefinition:
    """Return the definition of one entry, such as a stored one. Raises `ScenarioFileError`.

    Older releases stored coding agents with fields that they don't use; these are ignored.
    """
    reader = TargetEntry(PositionedDocument(file, dict(entry), Positions()), (), dict(entry))
    if refused := [
        problem
        for problem in reader.problems()
        if not (problem.lint or problem.id in ("targets/unused-field", "targets/unknown-field"))
    ]:
        raise ScenarioFileError(refused)
    return reader.definition()


def resolve_definition(
    definition: TargetDefinition, env: Mapping[str, str], *, base_folder: str = ""
) -> ResolvedTarget:
    """Return the target with its variables resolved.

    `env` has only variables that the project may use (see `allowed`). Raises `ProviderError` (kind `configuration`) naming the variable or field that is wrong.
    """
    resolution = _Resolution(definition, env)
    values = resolution.values()
    if values.get("cwd") and base_folder:
        values["cwd"] = str(Path(base_folder, str(values["cwd"])))
    try:
        options = definition.options.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ProviderError(
            f"The target '{definition.name}' cannot be used: {line_of(first['loc'])}: {validation_message(first)}. "
            "Correct the field, or the variable that it refers to.",
            kind="configuration",
        ) from error
    return ResolvedTarget(definition.name, definition.kind, options, base_folder, tuple(resolution.secrets))


@dataclass
class _Resolution:
    """Replaces references with values and remembers the values."""

    definition: TargetDefinition
    env: Mapping[str, str]

    def __post_init__(self) -> None:
        self.secrets: list[str] = []

    def values(self) -> dict[str, Json]:
        """Return the fields with their values, without optional ones whose variable is missing."""
        required = {
            name for name, field in self.definition.options.model_fields.items() if field.is_required()
        }
        values: dict[str, Json] = {}
        for field, value in self.definition.fields.items():
            name = find_reference(value)
            if name and not self.env.get(name, "").strip() and field not in required:
                continue
            if field in self.definition.options.opaque_fields:
                values[field] = value
            else:
                values[field] = self._value(value, (field,))
        return values

    def _value(self, value: Json, at: Location) -> Json:
        if isinstance(value, dict):
            return {
                key: self._value(item, (*at, key))
                for key, item in value.items()
                if not self._is_omitted(key, item)
            }
        if isinstance(value, list):
            return [self._value(item, (*at, index)) for index, item in enumerate(value)]
        return self._variable(find_reference(value), at) if find_reference(value) else value

    def _is_omitted(self, key: str, value: Json) -> bool:
        name = find_reference(value)
        return (
            bool(name)
            and key in ("cwd", "workspace_template", "log_dir")
            and not self.env.get(name, "").strip()
        )

    def _variable(self, name: str, at: Location) -> str:
        value = self.env.get(name, "")
        if not value.strip():
            state = "is empty" if name in self.env else "is not set, or this project may not use it"
            raise ProviderError(
                f"The target '{self.definition.name}' needs the variable {name} for {line_of(at)}, and it {state}. "
                "Set it on the worker and allow it in EVALHUB_ENV_ALLOW.",
                kind="configuration",
            )
        self.secrets.append(value)
        return value


def _find_repeated(document: PositionedDocument, entries: list[Json]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        fields = entry if isinstance(entry, dict) else {}
        name = str(fields.get("name") or fields.get("label") or fields.get("id"))
        if name in seen:
            yield document.problem(
                ("targets", index, "name"),
                f"There are two targets called '{name}'.",
                fix="Give each a unique name.",
                id="targets/repeated-name",
            )
        seen.add(name)


def resolve_target(
    target: Target, variables: Mapping[str, str], version: TargetVersion | None = None
) -> ResolvedTarget:
    """Return a stored target with its variables resolved, of the given version if any.

    Raises `ProviderError` naming what is missing.
    """
    entry = version.definition if version else target.definition
    try:
        definition = define(entry, file=target.name)
    except ScenarioFileError as error:
        # Stored definitions were valid once; a newer release may require more.
        raise ProviderError(
            f"The target '{target.name}' is no longer valid: {error.problems[0]}", kind="configuration"
        ) from error
    roots = containment().targets
    refuse_using(definition, variables, roots, base=target.base_folder)
    resolved = resolve_definition(definition, variables, base_folder=target.base_folder)
    return _reachable(replace(resolved, prices=prices_of(target.project_id)), variables)


def _reachable(target: ResolvedTarget, variables: Mapping[str, str]) -> ResolvedTarget:
    """Return a model with its API key, and any other target unchanged."""
    if target.kind not in MODELS:
        return target
    # Imported only for models because it takes as long as the rest of `runs`.
    from runs.targets.providers.access import with_key

    return with_key(target, variables)


def definition_hash(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the fields that results depend on."""
    return content_hash({name: value for name, value in definition.items() if name not in NO_RESULT})


def version_of(target: Target) -> TargetVersion:
    """Return the version of a target's current definition; create it if there is none."""
    version, _ = TargetVersion.objects.get_or_create(
        target=target,
        sha256=definition_hash(target.definition),
        defaults={"definition": target.definition},
    )
    return version


def request_check(target: Target, *, by: User | None) -> TargetCheck:
    """Return the pending check of a target; create one if there is none.

    Older checks are deleted, except the last result.
    """
    now = timezone.now()
    newest = target.checks.first()
    if newest is not None and newest.is_waiting(now=now):
        return newest
    answered = target.checks.exclude(at=None).first()
    with write_transaction():
        target.checks.exclude(pk=answered.pk if answered else 0).delete()
        check = TargetCheck.objects.create(target=target, by=by if getattr(by, "pk", None) else None)
        expires = check.asked + check.PATIENCE
        job = request_job(Job.Kind.CHECK, check.pk, labels=target.labels, expires=expires)
        audit.append_event(target.project, by, "target.check", target.name)
    wakeups.wake_for_job(job)
    return check


def answer_check(job: Job) -> None:
    """Check a target on this machine and store the result."""
    asked = TargetCheck.objects.filter(pk=job.subject, at=None)
    check = asked.select_related("target__project").first()
    if check is None:
        return
    answer = _answer(check_target(check.target))
    retry_when_lost(lambda: asked.update(worker=_here(), **answer))


def store_availability(target: Target, availability: Availability) -> None:
    """Store the check that a run's preparation made, unless a check is pending.

    It replaces the last result. The sentence must not contain secrets.
    """
    newest = target.checks.first()
    if newest is not None and newest.is_waiting(now=timezone.now()):
        return
    check = TargetCheck.objects.create(target=target, worker=_here(), **_answer(availability))
    target.checks.filter(pk__lt=check.pk).delete()


def _here() -> str:
    return socket.gethostname()[:200]


def _answer(availability: Availability) -> dict[str, Any]:
    """Return the columns of a check that has just finished; available is None if nothing was tried."""
    return {
        "at": timezone.now(),
        "available": availability.available if availability.tried else None,
        "sentence": make_storable(availability.sentence),
        "version": make_storable(availability.version)[:200],
    }


def check_target(target: Target) -> Availability:
    """Return whether the target works on this machine; configuration errors are part of the answer."""
    try:
        resolved = resolve_target(target, variables_of(target.project))
        availability = make_provider(resolved, containment().for_target(resolved.options)).check()
    except ProviderError as error:
        return Availability(available=False, sentence=str(error))
    return replace(availability, sentence=mask_values(availability.sentence, resolved.secrets))
