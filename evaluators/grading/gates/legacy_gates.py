"""Gate kinds of earlier versions of llm-tool-test, each with the generic gate that replaces it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import yaml

from evaluators.model import Json

_Gate = dict[str, Json]


def _count(command: str, path: str, count: Json) -> _Gate:
    return {
        "type": "command_json_path",
        "command": command,
        "path": path,
        "assertion": f"len >= {count if isinstance(count, int) else 1}",
    }


def _contains(command: str, substring: Json) -> _Gate:
    return {"type": "command_output_contains", "command": command, "substring": str(substring)}


def _gate(kind: str, tool: str, parameters: Mapping[str, Json]) -> _Gate | None:
    def word(key: str) -> str:
        return shlex.quote(str(parameters.get(key, f"{key.upper()}")))

    match kind:
        case "min_notes":
            return _count(f"{tool} list --format json", "$", parameters.get("count"))
        case "min_links":
            return _count(f"{tool} export --format json", "$.links", parameters.get("count"))
        case "search_hit":
            return _contains(f"{tool} search {word('query')}", parameters.get("query", "QUERY"))
        case "note_exists":
            return {"type": "command_succeeds", "command": f"{tool} show {word('id')}"}
        case "link_exists":
            return _contains(f"{tool} show {word('from')}", parameters.get("to", "TO"))
        case "tag_exists":
            return _contains(f"{tool} list --format json", parameters.get("tag", "TAG"))
        case "content_contains":
            return _contains(f"{tool} show {word('id')}", parameters.get("substring", "SUBSTRING"))
        case "doctor_passes":
            return {"type": "command_succeeds", "command": f"{tool} doctor"}
    return None


def replacement_gate(kind: str, parameters: Mapping[str, Json], *, binary: str = "") -> str | None:
    """Return the YAML of the gate that replaces a legacy kind, ready to paste; None for other kinds.

    `parameters` are the legacy gate's parameters, `binary` is the scenario's tool. Follows the migration table of
    llm-tool-test evaluation, Layer 2; a link, missing there, is searched in the output of `show` on its source.
    """
    gate = _gate(kind, binary or "my-tool", parameters)
    return (
        None if gate is None else str(yaml.safe_dump([gate], sort_keys=False, allow_unicode=True, width=200))
    )
