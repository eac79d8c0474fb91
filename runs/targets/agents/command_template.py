"""Render the command template of a `cli` target."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

PLACEHOLDERS = (
    "PROMPT",
    "PROMPT_FILE",
    "GUIDELINES",
    "EVAL_ID",
    "ATTEMPT",
    "FILES",
    "OUTPUT_FILE",
    "WORKSPACE",
    "EVENTS_FILE",
    "MODEL",
)
"""The AgentV specification's (CLI Template Execution), and evalhub's own: the last three."""

_PLACEHOLDER = re.compile(r"\{([A-Z_]+)\}")
_FILE_PLACEHOLDER = re.compile(r"\{(path|basename)\}")


@dataclass(frozen=True)
class TemplateValues:
    """Unescaped values of the placeholders. Paths are those inside the sandbox."""

    prompt: str = ""
    prompt_file: str = ""
    guidelines: str = ""
    eval_id: str = ""
    attempt: int = 0
    files: tuple[str, ...] = ()
    output_file: str = ""
    workspace: str = ""
    events_file: str = ""
    model: str = ""


def _placeholders(template: str) -> tuple[str, ...]:
    return tuple(_PLACEHOLDER.findall(template))


def uses_placeholder(template: str, placeholder: str) -> bool:
    """Return whether a template has a placeholder."""
    return placeholder in _placeholders(template)


def refuse_unsupported(template: str) -> str:
    """Return the template. Raises `ValueError` with a sentence for an unknown placeholder."""
    if unsupported := [name for name in _placeholders(template) if name not in PLACEHOLDERS]:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise ValueError(f"there is no placeholder {{{unsupported[0]}}}; the placeholders are {known}")
    return template


def quote(value: str) -> str:
    """Return a value quoted as one shell word."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def render(template: str, values: TemplateValues, files_format: str = "{path}") -> str:
    """Return the shell line. Values are escaped and not expanded again."""
    if not _placeholders(template):
        return template
    words = {
        "PROMPT": quote(values.prompt),
        "PROMPT_FILE": quote(values.prompt_file),
        "GUIDELINES": quote(values.guidelines),
        "EVAL_ID": quote(values.eval_id),
        "ATTEMPT": quote(str(values.attempt)),
        "FILES": _files(values.files, files_format),
        "OUTPUT_FILE": quote(values.output_file),
        "WORKSPACE": quote(values.workspace),
        "EVENTS_FILE": quote(values.events_file),
        "MODEL": quote(values.model),
    }
    return _PLACEHOLDER.sub(lambda placeholder: words[placeholder[1]], refuse_unsupported(template))


def _files(files: Iterable[str], files_format: str) -> str:
    def one(path: str) -> str:
        parts = {"path": quote(path), "basename": quote(PurePath(path).name)}
        return _FILE_PLACEHOLDER.sub(lambda placeholder: parts[placeholder[1]], files_format)

    return " ".join(one(path) for path in dict.fromkeys(files))
