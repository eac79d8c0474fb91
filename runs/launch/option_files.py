"""Command-line options that name files, addresses or commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.launch.runner_config import TARGET, read_config
from runs.launch.source_files import read_json_file, read_registry_file
from runs.targets.import_targets import import_targets
from scenarios.bundle_limits import read_whole
from scenarios.tool_descriptions import read_descriptions


def apply_config(project: Project, options: dict[str, Any]) -> None:
    """Fill in missing options from the `--config` file. Raises `RequestError`.

    An endpoint becomes the target `agent-endpoint`, the default if no target is named.
    """
    if not options["config"]:
        return
    path = Path(options["config"])
    config = read_config(path)
    defaults = {
        "seed_manifest": config.seed_manifest,
        "snapshot": config.snapshot,
        "tool_registry": config.registry,
        "output_dir": config.output_dir,
        "baseline": config.baseline,
        "concurrency": config.concurrency,
        "timeout_seconds": config.timeout_seconds,
    }
    for name, value in defaults.items():
        if not options[name] and value:
            options[name] = str(value) if isinstance(value, Path) else value
    if config.target:
        text = yaml.safe_dump({"targets": [dict(config.target)]}).encode()
        import_targets(project, text, path.name, by=None, base_folder=str(path.resolve().parent))
        options["targets"] = options["targets"] or [TARGET]


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
        try:
            values["descriptions"] = read_descriptions(read_whole(path), path.name)
        except OSError as error:
            raise RequestError(
                f"{path}: The tool descriptions cannot be read: {error.strerror}. Check the path."
            ) from error
    return values


def _file_or_source(value: str, name: str, read: Any) -> dict[str, Any]:
    # A command may be too long for a path: os.path returns False where pathlib raises.
    return {name: read(Path(value))} if os.path.exists(value) else {f"{name}_source": value}  # noqa: PTH110
