"""Reads scenario files only to say what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scenarios.bundles import read_path
from scenarios.formats import parse_files
from scenarios.formats.problems import Problem, ScenarioFileError


def check_paths(paths: Iterable[Path], *, command_pattern: str = "", strict: bool = False) -> list[Problem]:
    """Return every problem and lint of files, folders and archives, sorted; none means they can be imported.

    `strict` is that of `parse_files`.
    """
    problems: list[Problem] = []
    for path in paths:
        problems += _check(path, command_pattern, strict=strict)
    return sorted(dict.fromkeys(problems))


def _check(path: Path, command_pattern: str, *, strict: bool) -> tuple[Problem, ...]:
    try:
        bundle = read_path(path)
        suites = parse_files(
            bundle.files,
            name=bundle.name,
            command_pattern=command_pattern,
            executables=bundle.executables,
            strict=strict,
        )
    except ScenarioFileError as error:
        return error.problems
    return tuple(lint for suite in suites for lint in suite.lints)
