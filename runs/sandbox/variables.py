"""Decide which worker variables a project may use (`EVALHUB_ENV_ALLOW`), and which need a sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runs.errors import ProviderError

Rule = tuple[str, str]
"""Project and variable; `*` matches all."""

LOADER_VARIABLES = frozenset(
    (
        "BASH_ENV",
        "GCONV_PATH",
        "LOCPATH",
        "NODE_OPTIONS",
        "PERL5LIB",
        "PERL5OPT",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONUSERBASE",
        "RUBYLIB",
        "RUBYOPT",
    )
)
"""Variables that make a program load code at start."""


def refuse_loader_variables(env: Mapping[str, str]) -> None:
    """Raise `ProviderError` (kind `configuration`) for variables that make programs load code."""
    for name in env:
        if name in LOADER_VARIABLES or name.startswith(("LD_", "DYLD_", "GLIBC_")):
            raise ProviderError(
                f"The variable {name} makes programs load code, and this worker has no sandbox for it. "
                "Remove it from the scenario or target, or install bubblewrap on the worker.",
                kind="configuration",
            )


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of `project:NAME, *:NAME`. Raises `ValueError` with a sentence."""
    return tuple(_rule(part.strip()) for part in text.split(",") if part.strip())


def allowed_variables(env: Mapping[str, str], project: str, rules: Iterable[Rule]) -> dict[str, str]:
    """Return the environment variables that a project's targets and scenarios may use."""
    names = {name for owner, name in rules if owner in ("*", project)}
    return {name: value for name, value in env.items() if name in names or "*" in names}


def _rule(part: str) -> Rule:
    project, separator, name = part.partition(":")
    if not (project.strip() and separator and name.strip()):
        raise ValueError(
            f"EVALHUB_ENV_ALLOW: '{part}' is not 'project:NAME'. Write the project's name or *, a colon and the variable."
        )
    return project.strip(), name.strip()
