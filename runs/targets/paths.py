"""Checks the paths in a target when it is saved and again when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from evaluators.model import Json
from runs.errors import ProviderError
from runs.sandbox.target_roots import PathRefused, TargetRoots, Use, refuse_climbing
from runs.targets.entries import TargetDefinition, find_reference
from scenarios.formats.problems import Problem, ScenarioFileError


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
