"""`import_scenarios`: store scenario files and their targets."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.db import transaction

from evalhub.lib.numbers import format_count
from evalhub.teams.models import Project
from runs.models import Target
from runs.targets.import_targets import UploadedTargets, folder_on_disk, import_uploaded_targets
from scenarios.bundles import Bundle, read_path, with_tool
from scenarios.commands import (
    FAILED,
    PASSED,
    EvalhubCommand,
    Result,
    acting_user,
    add_project_argument,
    add_strict_argument,
    add_tool_argument,
    chosen_project,
)
from scenarios.imports import Imported, import_files


class Command(EvalhubCommand):
    help = "Store scenario files, folders or bundles as versions of suites, and import their targets."
    examples = (
        "my-suite/",
        "bundle.zip --project tools",
        "my-skill/ --tool gh",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or bundle")
        add_project_argument(parser)
        add_strict_argument(parser)
        add_tool_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"])
        bundles = [(Path(path), _read(Path(path), options["tool"])) for path in options["paths"]]
        with transaction.atomic():
            stored = [_store(path, bundle, project, strict=options["strict"]) for path, bundle in bundles]
        document = {
            "suites": [_json(suite) for imported, _ in stored for suite in imported],
            "targets": [_target_json(target) for _, uploaded in stored for target in uploaded.targets],
            "target_problems": [problem.as_json() for _, uploaded in stored for problem in uploaded.problems],
            "target_hints": [hint.as_json() for _, uploaded in stored for hint in uploaded.hints],
        }
        text = "\n".join(line for bundle in stored for line in _lines(*bundle))
        return Result(text, document, FAILED if document["target_problems"] else PASSED)


def _read(path: Path, tool: str | None) -> Bundle:
    return with_tool(read_path(path), tool) if tool else read_path(path)


def _store(
    path: Path, bundle: Bundle, project: Project, *, strict: bool
) -> tuple[tuple[Imported, ...], UploadedTargets]:
    """Store a bundle's suites, and import its targets as `run_scenarios` does."""
    by = acting_user()
    imported = import_files(bundle, project=project, by=by, strict=strict)
    versions = [each.version for each in imported]
    folder = next((folder_on_disk(path, each.targets_file) for each in versions if each.targets_text), "")
    return imported, import_uploaded_targets(versions, by=by, base_folder=folder)


def _lines(imported: tuple[Imported, ...], uploaded: UploadedTargets) -> list[str]:
    lines = [_text(each) for each in imported]
    if uploaded.targets:
        lines.append(f"Imported targets: {', '.join(each.name for each in uploaded.targets)}.")
    if uploaded.problems:
        lines.append("The targets file has errors and was not imported; the suites were stored:")
    return [*lines, *(f"  {problem}" for problem in (*uploaded.problems, *uploaded.hints))]


def _target_json(target: Target) -> dict[str, Any]:
    return {"name": target.name, "provider": target.provider, "accepted": target.accepted}


def _text(imported: Imported) -> str:
    changes = imported.changes
    parts = [f"{len(keys)} {word}" for word, keys in _by_kind(imported).items() if keys]
    version = f"{imported.suite.slug} v{imported.version.number}"
    state = "new" if imported.new_version else "unchanged"
    lines = [
        f"{version} ({state}): {format_count(len(changes.added) + len(changes.changed) + len(changes.unchanged), 'scenario')}"
    ]
    lines[0] += f"; {', '.join(parts)}" if imported.new_version and parts else ""
    if imported.guidance is not None:
        lines.append(f"  {imported.guidance} ({'new' if imported.new_guidance else 'unchanged'})")
    return "\n".join([*lines, *(f"  {lint}" for lint in imported.lints)])


def _by_kind(imported: Imported) -> dict[str, tuple[str, ...]]:
    changes = imported.changes
    return {"added": changes.added, "changed": changes.changed, "retired": changes.retired}


def _json(imported: Imported) -> dict[str, Any]:
    return {
        "suite": imported.suite.slug,
        "version": imported.version.number,
        "new_version": imported.new_version,
        "guidance": imported.guidance.sha256[:8] if imported.guidance else None,
        "new_guidance": imported.new_guidance,
        **{word: list(keys) for word, keys in _by_kind(imported).items()},
        "unchanged": list(imported.changes.unchanged),
        "lints": [lint.as_json() for lint in imported.lints],
    }
