"""Reads the runner configuration of tool-forge: a JSON file with defaults of options.

The names are those of its eval runner contract (Runner Configuration) and of forge.config.json, which has the
agent under `agent` and folders under `evals` and `project`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runs.errors import RequestError
from scenarios.bundle_limits import read_whole

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


@dataclass(frozen=True)
class RunnerConfig:
    """The settings of a configuration file; None and empty mean not set. Paths are relative to its folder."""

    target: Mapping[str, Any] = field(default_factory=dict)
    """A targets file entry for the endpoint; empty without one."""
    seed_manifest: Path | None = None
    snapshot: str = ""
    registry: Path | None = None
    output_dir: Path | None = None
    baseline: str = ""
    concurrency: int | None = None
    timeout_seconds: float | None = None


def read_config(path: Path) -> RunnerConfig:
    """Return the settings of a configuration file. Raises `RequestError`."""
    try:
        value = json.loads(read_whole(path))
    except OSError as error:
        raise RequestError(
            f"{path}: The configuration cannot be read: {error.strerror}. Check the path."
        ) from error
    except ValueError as error:
        raise RequestError(f"{path}: The configuration is not JSON: {error}. Correct it.") from error
    if not isinstance(value, dict):
        raise RequestError(
            f"{path}: The configuration is not a JSON object. Write {{…}} around its settings."
        )
    return _Reader(path, value).config()


class _Reader:
    def __init__(self, path: Path, value: Mapping[str, Any]) -> None:
        self.path = path
        self.value = value
        self.agent = self._object("agent")
        self.evals = self._object("evals")
        self.project = self._object("project")

    def config(self) -> RunnerConfig:
        milliseconds = (
            self._number("timeoutMs", self.value) or self._number("timeoutMs", self.agent) or TIMEOUT_MS
        )
        concurrency = self._number("concurrency", self.value)
        baseline = self.value.get("baselineRunId")
        return RunnerConfig(
            target=self._target(),
            seed_manifest=self._path(
                self.value.get("seedManifestPath") or self.evals.get("seedManifestFile")
            ),
            snapshot=self._text("snapshot") if self.value.get("snapshotEnabled") else "",
            registry=self._path(self.value.get("toolRegistryPath") or self.project.get("barrelsFile")),
            output_dir=self._path(self.value.get("outputDir") or OUTPUT_DIR),
            baseline=str(baseline) if baseline else "",
            concurrency=int(concurrency) if concurrency else None,
            timeout_seconds=milliseconds / 1000,
        )

    def _target(self) -> dict[str, Any]:
        url = self.value.get("agentEndpoint") or self.agent.get("endpoint")
        if not url:
            return {}
        options = {ours: self.agent[theirs] for theirs, ours in _AGENT_FIELDS.items() if theirs in self.agent}
        return {"name": TARGET, "provider": "http", "url": url, **options}

    def _object(self, name: str) -> Mapping[str, Any]:
        value = self.value.get(name) or {}
        if not isinstance(value, dict):
            raise RequestError(f"{self.path}: '{name}' is not an object. Write {{…}} there.")
        return value

    def _text(self, name: str) -> str:
        value = self.value.get(name)
        if not isinstance(value, str) or not value:
            raise RequestError(
                f"{self.path}: 'snapshotEnabled' is set without '{name}'. Give it a file, an address or a command."
            )
        return value

    def _number(self, name: str, where: Mapping[str, Any]) -> float:
        value = where.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise RequestError(f"{self.path}: '{name}' is {value!r}. Give it a number above 0.")
        return float(value)

    def _path(self, value: Any) -> Path | None:
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise RequestError(f"{self.path}: {value!r} is not a path. Write it as text.")
        return self.path.resolve().parent / value
