"""Write a draft of a scenario file, for a person to complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from evaluators.tool_use.tool import Tool
from scenarios.formats.llm_tool_test.scenario_models import (
    FILL_IN,
)
from scenarios.formats.yaml_text import BlockDumper

_TARGET_FIELDS = ("binary", "command_pattern", "health_check", "version_command", "env")
_PROTECTED = "# Files that gates execute and that are not the task:\n# protected: [check.sh, 'tests/**']\n"


def draft_scenario(
    name: str,
    prompt: str,
    tool: Tool | None,
    commands: Sequence[str],
    source: str,
    protected: Sequence[str] | None = None,
    schema: str = "",
) -> str:
    """Return a scenario in YAML with the prompt, the tool and a gate to fill in; `commands` become comments.

    `protected` has the patterns of the scenario that it is drafted from; None writes a comment instead. `schema` is the
    address of the format's JSON Schema, which editors read from the first line.
    """
    fields = tool.model_dump(mode="json") if tool else {}
    document: dict[str, Any] = {
        "name": name,
        "description": f"Drafted from {source}.",
        "target": {key: fields[key] for key in _TARGET_FIELDS if fields.get(key)},
        "task": {"prompt": prompt.strip() or f"{FILL_IN}: what the person asked the agent to do"},
        "evaluation": {
            "gates": [
                {
                    "type": "command_succeeds",
                    "command": f"false  # {FILL_IN}: check what must be true after it",
                }
            ]
        },
        "tags": ["draft"],
    }
    if protected is not None:
        document["protected"] = list(protected)
    if not document["target"]:
        del document["target"]
    seen = "".join(f"#   {' '.join(line.split())}\n" for line in commands)
    head = f"# The agent's commands that failed, up to the one that worked:\n{seen}" if seen else ""
    body = yaml.dump(document, Dumper=BlockDumper, sort_keys=False, allow_unicode=True, width=100)
    return name_schema(schema) + head + body + (_PROTECTED if protected is None else "")


def name_schema(address: str) -> str:
    """Return the first line of a YAML file, from which editors know its schema; empty without an address."""
    return f"# yaml-language-server: $schema={address}\n" if address else ""
