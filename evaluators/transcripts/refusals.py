"""Calls that never ran, by the words that agents' programs put in place of a result."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evaluators.model import NotRun

Refusals = tuple[tuple[NotRun, re.Pattern[str]], ...]
"""What each kind of refusal begins with."""


def _patterns(**sources: str) -> Refusals:
    kinds: tuple[NotRun, ...] = ("rejected", "denied", "cancelled", "invalid")
    return tuple((kind, re.compile(sources[kind])) for kind in kinds if kind in sources)


CLAUDE_CODE = _patterns(
    rejected=r"The user doesn't want to (?:proceed with this tool use|take this action right now)"
    r"|Permission for this tool use was denied\. The tool use was rejected"
    r"|User rejected tool use",
    denied=r"Permission to use \S+(?: with command [\s\S]{0,4000}?)? (?:has been )?denied\b"
    r"|Permission for this (?:action|command|tool use) (?:has been|was) denied\b"
    r"|Permission denied by (?:\w+ )?hook"
    r"|Claude requested permissions to [\s\S]{0,4000}?, but you haven't granted it yet"
    r"|This command requires approval\s*$"
    r"|\w+ did not run\. It needs the user's approval"
    r"|PreToolUse:\S+ hook (?:error|blocking error)\b|\w+ operation blocked by hook\b"
    r"|Execution stopped by PreToolUse hook|<tool_use_error>Blocked: ",
    cancelled=r"<tool_use_error>(?:Cancelled: |Sibling tool call errored)|Sibling tool call errored"
    r"|\[Tool call (?:skipped|not completed): ",
    # This tag stands for a result before the tool runs, but for "Error calling tool".
    invalid=r"<tool_use_error>(?!Error calling tool|(?:Error: )?No such tool available: mcp__)"
    r"|InputValidationError: ",
)
CLAUDE_CODE_UNKNOWN = re.compile(
    r"\[Tool call (?:interrupted|did not complete|result not in this copy): "
    r"|\[Request interrupted by user for tool use\]|A safety monitor blocked this turn"
)
"""What Claude Code writes for a call that may have run and whose result it never saw."""
CLAUDE_CODE_KINDS: Mapping[str, NotRun] = {
    "user-rejected": "rejected",
    "permission-rule": "denied",
    "automode-blocked": "denied",
    "automode-unavailable": "denied",
    "automode-parsing-error": "denied",
    "cancelled": "cancelled",
}
"""Why a call did not run, as Claude Code names it; `interrupted`, its other kind, may have run."""
INTERRUPTED = "interrupted"
CODEX = _patterns(
    rejected=r"(?:exec command |patch )?rejected by user\b"
    r"|(?:exec_command|shell_command|shell|command) failed[\s\S]{0,4000}?Rejected\(\"rejected by user",
    denied=r"`[\s\S]{0,4000}?` rejected: |patch rejected: |write_stdin rejected: "
    r"|exec command rejected\b|[\w ]+; rejected by user approval settings"
    r"|approval policy is \w+; reject command"
    r"|(?:exec_command|shell_command|shell|command) failed[\s\S]{0,4000}?Rejected\(",
    invalid=r"failed to parse function arguments|unsupported (?:custom tool )?call: ",
)
OPENCODE = _patterns(
    rejected=r"The user rejected permission to use this specific tool call",
    denied=r"The user has specified a rule which prevents you from using this specific tool call",
    cancelled=r"Tool execution (?:was )?(?:aborted|interrupted)$",
    invalid=r"The \S+ tool was called with invalid arguments"
    r"|The arguments provided to the tool are invalid",
)


def find_refusal(text: str, known: Refusals) -> NotRun:
    """Return why a call did not run, by the beginning of what stands for its result; empty if it ran."""
    begins = text.lstrip()
    return next((kind for kind, pattern in known if pattern.match(begins)), "")
