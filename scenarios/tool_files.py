"""Separate the tool under test from a fixture's files: a new version of the tool is not a new task."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluators.tool_use.tool import Tool
from scenarios.globs import matches

if TYPE_CHECKING:  # a format imports this
    from scenarios.formats.parsed import Fixture


def is_tool_file(path: str, tool: Tool | None) -> bool:
    """Return whether a file of the workspace is the tool: its binary, or matched by one of its `files` patterns."""
    if tool is None:
        return False
    binary = posixpath.normpath(tool.binary) if tool.binary else ""
    # Folders of a tool that is named without a path.
    places = {binary} if "/" in binary else {folder + binary for folder in ("", "bin/") if binary}
    return path in places or any(matches(path, pattern) for pattern in tool.files)


def split_tool(fixture: Fixture, tool: Tool | None) -> tuple[Fixture, Fixture]:
    """Return a fixture without the tool's files, and those files."""
    is_tool = [is_tool_file(file.path, tool) for file in fixture]
    rest = tuple(file for file, own in zip(fixture, is_tool, strict=True) if not own)
    return rest, tuple(file for file, own in zip(fixture, is_tool, strict=True) if own)


def tool_file_problems(patterns: Sequence[str]) -> list[str]:
    """Return what is wrong with `files` patterns, one sentence each."""
    return [
        f"'{pattern}' leads out of the workspace. "
        for pattern in patterns
        if pattern.startswith("/") or ".." in pattern.split("/")
    ]
