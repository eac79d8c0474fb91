"""Which variables of a worker a project may use (`EVALHUB_ENV_ALLOW`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Rule = tuple[str, str]
"""Project and variable; `*` is every one."""


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of `project:NAME, *:NAME`. Raises `ValueError` with a sentence."""
    return tuple(_rule(part.strip()) for part in text.split(",") if part.strip())


def allowed(env: Mapping[str, str], project: str, rules: Iterable[Rule]) -> dict[str, str]:
    """Return the part of an environment that a project's targets and scenarios may refer to."""
    names = {name for owner, name in rules if owner in ("*", project)}
    return {name: value for name, value in env.items() if name in names or "*" in names}


def _rule(part: str) -> Rule:
    project, separator, name = part.partition(":")
    if not (project.strip() and separator and name.strip()):
        raise ValueError(
            f"EVALHUB_ENV_ALLOW: '{part}' is not 'project:NAME'. Write the project's name or *, a colon and the variable."
        )
    return project.strip(), name.strip()
