"""Read the help of the tool under test, once for each version and subcommand, and compare failed calls with it."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings

from evalhub.lib.limits import LONGEST_NAME, LONGEST_TEXT
from evalhub.lib.storable_text import make_storable
from evaluators.redaction import redact_patterns
from evaluators.tool_use.flag_confusion import (
    TOOL,
    HelpPage,
    argument_confusions,
    confused_subcommands,
    find_confusions,
    parse_help,
)
from evaluators.tool_use.mcp_record import McpSurface
from evaluators.tool_use.tool import Tool
from runs.db.retry import outage, retry_when_lost
from runs.engine.context import RunContext
from runs.engine.recording import TrialResult
from runs.engine.workspace.workspace import LocalWorkspace, trial_folder
from runs.errors import ProviderError
from runs.models import ToolHelp
from runs.models.trial import json_of
from scenarios.formats.parsed import Fixture

logger = logging.getLogger(__name__)


def with_confusions(
    result: TrialResult,
    context: RunContext,
    tool: Tool | None,
    files: Fixture,
    surface: McpSurface | None = None,
) -> TrialResult:
    """Return the result with what its failed calls confused, by the tool's help or by what an MCP server showed.

    `files` are the scenario's own: the tool may lie among them.
    """
    commands = result.interaction.commands if result.interaction else ()
    if surface is not None and tool and tool.mcp:
        flags = argument_confusions(commands, surface, tool.mcp.name)
    # A proof's run belongs to no project.
    elif tool and tool.binary and context.run.project_id and (wanted := confused_subcommands(commands)):
        # Subcommands of one trial whose help is read.
        flags = find_confusions(commands, _pages(context, tool, files, (TOOL, *wanted[:10])))
    else:
        return result
    return replace(result, detail=result.detail | {"flags": json_of(flags)}) if flags else result


def _pages(context: RunContext, tool: Tool, files: Fixture, names: Iterable[str]) -> dict[str, HelpPage]:
    """Return the help pages of a tool's version by subcommand; those not stored yet are read now."""
    names = [name for name in names if len(name) <= LONGEST_NAME]
    key: dict[str, Any] = {
        "project": context.run.project,
        "binary": tool.binary[:LONGEST_NAME],
        "tool_version": context.run.tool_version,
    }
    rows = ToolHelp.objects.filter(**key, subcommand__in=names).values_list("subcommand", "text")
    # The agent's work is done and not recorded yet.
    texts = retry_when_lost(lambda: dict(rows.all()), may_wait=outage.may_wait)
    missing = [name for name in names if name not in texts]
    for name, text in _read(context, tool, files, missing).items():
        row = key | {"subcommand": name}
        store = partial(ToolHelp.objects.get_or_create, **row, defaults={"text": text})
        retry_when_lost(store, may_wait=outage.may_wait)
        texts[name] = text
    return {name: parse_help(text) for name, text in texts.items()}


def _read(context: RunContext, tool: Tool, files: Fixture, names: list[str]) -> dict[str, str]:
    """Return what the tool prints for help, in a scratch workspace with the fixture; agents never touched it."""
    if not names:
        return {}
    try:
        with trial_folder(settings.WORK_DIR, files) as folder:
            workspace = context.workspace(folder, tool)
            return {name: _help(workspace, tool.binary, name) for name in names}
    except ProviderError as error:
        logger.warning("the help of %s cannot be read: %s", tool.binary, error)
        return {}


def _help(workspace: LocalWorkspace, binary: str, subcommand: str) -> str:
    command = f"{binary} {shlex.quote(subcommand)}" if subcommand else binary
    for option in ("--help", "-h"):
        result = workspace.run(f"{command} {option}", timeout_seconds=5.0)
        text = result.stdout if parse_help(result.stdout).options else result.stderr
        if parse_help(text).options:
            return redact_patterns(make_storable(text[:LONGEST_TEXT]))
    return ""
