"""Reads the runner configuration of tool-forge: a JSON file with defaults of options.

The names are those of its eval runner contract (Runner Configuration) and of forge.config.json, which has the
agent under `agent` and folders under `evals` and `project`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.launch.source_files import read_json_file
from runs.targets.import_targets import import_targets

TARGET = "agent-endpoint"
"""Name of the target made from a configuration's endpoint."""
TIMEOUT_MS = 60_000.0
OUTPUT_DIR = "evals/results/"
"""The contract's defaults, where the configuration says nothing else."""
_AGENT_FIELDS = {
    "method": "method",
    "headers": "headers",
    "inputField": "input_field",
    "outputField": "output_field",
    "sessionField": "session_field",
}


def apply_config(project: Project, options: dict[str, Any]) -> None:
    """Fill in missing options from the `--config` file. Raises `RequestError`.

    An endpoint becomes the target `agent-endpoint`, the default if no target is named.
    """
    if not options["config"]:
        return
    path = Path(options["config"])
    defaults, target = read_config(path)
    options |= {name: value for name, value in defaults.items() if not options[name] and value}
    if target:
        text = yaml.safe_dump({"targets": [target]}).encode()
        import_targets(project, text, path.name, by=None, base_folder=str(path.resolve().parent))
        options["targets"] = options["targets"] or [TARGET]


def read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a configuration file's options of the command, empty ones too, and the entry of its target; empty without.

    Its paths are relative to its folder. Raises `RequestError`.
    """
    value = read_json_file(path, "The configuration")
    if not isinstance(value, dict):
        raise RequestError(
            f"{path}: The configuration is not a JSON object. Write {{…}} around its settings."
        )
    agent, evals, of_project = (_object(path, value, name) for name in ("agent", "evals", "project"))
    milliseconds = _number(path, value, "timeoutMs") or _number(path, agent, "timeoutMs") or TIMEOUT_MS
    defaults = {
        "seed_manifest": _path(path, value.get("seedManifestPath") or evals.get("seedManifestFile")),
        "snapshot": _text(path, value, "snapshot") if value.get("snapshotEnabled") else "",
        "tool_registry": _path(path, value.get("toolRegistryPath") or of_project.get("barrelsFile")),
        "output_dir": _path(path, value.get("outputDir") or OUTPUT_DIR),
        "baseline": str(value.get("baselineRunId") or ""),
        "concurrency": int(_number(path, value, "concurrency")),
        "timeout_seconds": milliseconds / 1000,
    }
    url = value.get("agentEndpoint") or agent.get("endpoint")
    fields = {ours: agent[theirs] for theirs, ours in _AGENT_FIELDS.items() if theirs in agent}
    return defaults, {"name": TARGET, "provider": "http", "url": url, **fields} if url else {}


def _object(path: Path, where: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = where.get(name) or {}
    if not isinstance(value, dict):
        raise RequestError(f"{path}: '{name}' is not an object. Write {{…}} there.")
    return value


def _text(path: Path, where: Mapping[str, Any], name: str) -> str:
    value = where.get(name)
    if not isinstance(value, str) or not value:
        raise RequestError(
            f"{path}: 'snapshotEnabled' is set without '{name}'. Give it a file, an address or a command."
        )
    return value


def _number(path: Path, where: Mapping[str, Any], name: str) -> float:
    value = where.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise RequestError(f"{path}: '{name}' is {value!r}. Give it a number above 0.")
    return float(value)


def _path(config: Path, value: Any) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise RequestError(f"{config}: {value!r} is not a path. Write it as text.")
    return str(config.resolve().parent / value)
