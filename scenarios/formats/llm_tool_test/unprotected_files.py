"""Lints about files of a fixture: those to protect, because gates run them, and hidden ones that the setup needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evaluators.name_lists import list_names
from scenarios.formats.parsed import Fixture
from scenarios.formats.positions import PositionedDocument
from scenarios.formats.problems import Problem
from scenarios.named_files import find_named, is_hidden
from scenarios.spec import ScenarioSpec
from scenarios.tool_files import is_tool_file
from scenarios.watched_files import WatchedNames

_MOST_OF_FOLDER = 2
"""Files of a folder that are named one by one."""


def unprotected_lints(spec: ScenarioSpec, fixture: Fixture, document: PositionedDocument) -> list[Problem]:
    """Return the lint of a scenario that doesn't say whether the files that its gates run are the task."""
    if spec.criteria.protected is not None:
        return []
    patterns = suggest_protected(spec, fixture)
    if not patterns:
        return []
    return [
        document.problem(
            ("evaluation", "gates"),
            f"Gates run or name files that the agent can change: {', '.join(patterns)}.",
            fix=f"Add `protected: [{', '.join(map(_quote, patterns))}]`, or `protected: []` if they are the task.",
            id="format/unprotected",
            lint=True,
        )
    ]


def lint_hidden_files(spec: ScenarioSpec, fixture: Fixture, document: PositionedDocument) -> list[Problem]:
    """Return a lint for each setup command that names hidden files, which therefore stay during the setup."""
    paths = [file.path for file in fixture if is_hidden(file.path, spec.hidden)]
    return [
        document.problem(
            ("setup", "commands", index),
            f"The setup names {list_names(sorted(named), 5)}, so hidden files are there during the setup: "
            "the agent can read what it commits or copies.",
            fix="Hidden files that no setup command names are laid after the agent.",
            id="format/hidden-in-setup",
            lint=True,
        )
        for index, command in enumerate(spec.setup)
        if (named := find_named(paths, [command]))
    ]


def suggest_protected(spec: ScenarioSpec, fixture: Fixture) -> list[str]:
    """Return patterns for the fixture's files that scripts and gates run or name, without the tool's own files."""
    texts = {file.path: file.content for file in fixture}
    names = WatchedNames(spec.commands_after_agent, spec.criteria.tool, lambda path: texts.get(path, b""))
    watched = names.find_watched({file.path: file.executable for file in fixture}, texts.__getitem__)
    paths = [path for path in sorted(watched) if not is_tool_file(path, spec.criteria.tool)]
    return list(_as_patterns(paths))


def _as_patterns(paths: list[str]) -> Iterable[str]:
    """Return paths, those of a folder with many as one pattern."""
    folders = Counter(path.split("/")[0] for path in paths if "/" in path)
    patterns = (
        f"{folder}/**" if folders[folder := path.split("/")[0]] > _MOST_OF_FOLDER else path for path in paths
    )
    return dict.fromkeys(patterns)


def _quote(pattern: str) -> str:
    return f"'{pattern}'" if "*" in pattern else pattern
