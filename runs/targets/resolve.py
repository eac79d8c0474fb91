"""Resolves a stored target: its variables, its prices and the key of its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from runs.errors import ProviderError
from runs.models import Target, TargetVersion
from runs.models.price import prices_of
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import define, resolve_definition
from runs.targets.paths import refuse_using
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.registry import MODELS
from scenarios.formats.problems import ScenarioFileError


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
