"""Files in."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.db import transaction

from scenarios.bundles import read_path
from scenarios.commands import (
    EvalhubCommand,
    Result,
    acting_user,
    add_project_argument,
    add_strict_argument,
    chosen_project,
)
from scenarios.imports import Imported, import_files


class Command(EvalhubCommand):
    help = "Store scenario files, folders or bundles as versions of suites."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or bundle")
        add_project_argument(parser)
        add_strict_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"])
        bundles = [read_path(Path(path)) for path in options["paths"]]
        by = acting_user()
        with transaction.atomic():
            imported = [
                each
                for bundle in bundles
                for each in import_files(bundle, project=project, by=by, strict=options["strict"])
            ]
        return Result(
            "\n".join(_told(each) for each in imported), {"suites": [_json(each) for each in imported]}
        )


def _told(imported: Imported) -> str:
    changes = imported.changes
    parts = [f"{len(keys)} {word}" for word, keys in _by_kind(imported).items() if keys]
    version = f"{imported.suite.slug} v{imported.version.number}"
    state = "new" if imported.new_version else "as before"
    lines = [
        f"{version} ({state}): {len(changes.added) + len(changes.changed) + len(changes.unchanged)} scenarios"
    ]
    lines[0] += f"; {', '.join(parts)}" if imported.new_version and parts else ""
    if imported.guidance is not None:
        lines.append(f"  {imported.guidance} ({'new' if imported.new_guidance else 'as before'})")
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
