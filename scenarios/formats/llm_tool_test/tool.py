"""`target:`, the tool under test, which may come from the scenario, the settings or the project."""

from __future__ import annotations

from evaluators.tool import Tool
from scenarios.formats.llm_tool_test.mirror import Target
from scenarios.formats.llm_tool_test.settings import FILE_NAME, Settings, target_problems
from scenarios.formats.positions import Document
from scenarios.formats.problems import Problem
from scenarios.formats.upload import Upload


def read_tool(
    own: Target | None, document: Document, upload: Upload, settings: Settings, *, from_config: bool
) -> tuple[Tool | None, list[Problem]]:
    """Return the tool of a scenario, or None where nothing names one.

    A pattern is the scenario's, else that of the settings when they speak of the same tool, else the
    project's (llm-tool-test evaluation, Command Identification).
    """
    if from_config and settings.target is None:
        return None, [_no_settings(document)]
    problems = target_problems(own, document, ("target",)) if own else []
    target = own or settings.target or Target()
    pattern = target.command_pattern or _shared_pattern(target, settings) or upload.command_pattern
    if not target.binary.strip() and not pattern.strip():
        return None, problems
    return Tool(**target.model_dump(exclude={"command_pattern"}), command_pattern=pattern), problems


def _shared_pattern(target: Target, settings: Settings) -> str:
    shared = settings.target
    if shared is None or (shared.binary and target.binary and shared.binary != target.binary):
        return ""
    return shared.command_pattern


def _no_settings(document: Document) -> Problem:
    return document.problem(
        ("target",),
        f"The upload has no {FILE_NAME} with a [target] table.",
        fix="Add the file to the upload, or write the tool into the scenario.",
        id="format/no-settings",
    )
