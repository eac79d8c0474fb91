"""Reads seed manifests, snapshots and tool registries."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from evaluators.model import Json
from evaluators.statistics.staleness import Registry
from runs.errors import RequestError
from scenarios.bundle_limits import read_whole
from scenarios.formats.tool_registry import read_registry, registry_of
from scenarios.tool_descriptions import read_descriptions

_SOURCE_FILES = ("*.json", "*.ts", "*.js", "*.mts", "*.mjs", "*.cts", "*.cjs")
MOST_WARNINGS = 20
MOST_SOURCE_FILES = 5000


def read_named(path: Path, what: str) -> bytes:
    """Return the content of a file that somebody named. Raises `RequestError`, which names it as `what`."""
    try:
        return read_whole(path)
    except OSError as error:
        raise RequestError(f"{path}: {what} cannot be read: {error.strerror}. Check the path.") from error


def read_json_file(path: Path, what: str) -> Json:
    """Return a JSON file's value. Raises `RequestError`, which names it as `what`."""
    content = read_named(path, what)
    try:
        return json.loads(content)
    except ValueError as error:
        raise RequestError(f"{path}: {what} is not JSON: {error}. Correct it.") from error


def read_registry_file(path: Path) -> Json:
    """Return the registry at a path (a JSON file, a barrel, a tool file or a folder of them) as JSON.

    Nothing is executed. Raises `RequestError` if it has no tools.
    """
    root = path if path.is_dir() else path.parent
    if not path.exists():
        raise RequestError(f"{path}: There is no tool registry. Check the path.")
    sources = [
        file for pattern in _SOURCE_FILES for file in root.rglob(pattern) if "node_modules" not in file.parts
    ]
    if len(sources) > MOST_SOURCE_FILES:
        raise RequestError(
            f"{root}: There are more than {MOST_SOURCE_FILES} source files. Name the registry itself."
        )
    files = {file.relative_to(root).as_posix(): file.read_bytes() for file in sources if file.is_file()}
    name = path.relative_to(root).as_posix() if path != root else "."
    reading = read_registry(files, name)
    if reading.registry is None:
        raise RequestError(f"{path}: {' '.join(reading.warnings) or 'There is no tool in it.'}")
    return _stored_registry(reading.registry, reading.warnings)


def _stored_registry(registry: Registry, warnings: Sequence[str]) -> Json:
    """Return a registry as stored with a run, which shows what could not be read of it."""
    stored: Json = msgspec.to_builtins(
        msgspec.structs.replace(registry, warnings=tuple(warnings[:MOST_WARNINGS]))
    )
    return stored


def registry_from(value: Json, source: str) -> Json:
    """Return a registry from received JSON, such as an MCP `tools/list` response. Raises `RequestError`."""
    reading = registry_of(value, source)
    if reading.registry is None:
        raise RequestError(" ".join(reading.warnings))
    return _stored_registry(reading.registry, reading.warnings)


def given_sources(options: dict[str, Any]) -> dict[str, Any]:
    """Return the run options for seed manifest, snapshot, registry and tool descriptions.

    Raises `RequestError` or `ScenarioFileError`.

    Files are read now; the worker reads an address or runs a command just before the run.
    """
    values: dict[str, Any] = {}
    if options["seed_manifest"]:
        values["seed"] = read_json_file(Path(options["seed_manifest"]), "The seed manifest")
    if options["snapshot"]:
        values |= _file_or_source(
            options["snapshot"], "snapshot", lambda path: read_json_file(path, "The snapshot")
        )
    if options["tool_registry"]:
        values |= _file_or_source(options["tool_registry"], "registry", read_registry_file)
    if options["tool_descriptions"]:
        path = Path(options["tool_descriptions"])
        values["descriptions"] = read_descriptions(read_named(path, "The tool descriptions"), path.name)
    return values


def _file_or_source(value: str, name: str, read: Any) -> dict[str, Any]:
    # A command may be too long for a path: os.path returns False where pathlib raises.
    return {name: read(Path(value))} if os.path.exists(value) else {f"{name}_source": value}  # noqa: PTH110
