"""Targets whose program the sandbox hides: noticed without running anything, on the machine that serves the pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from runs.sandbox.target_roots import PathRefused, Use
from runs.sandbox.worker_settings import containment
from runs.targets.agents.program_lookup import HiddenFiles, hidden_files, literal_words
from runs.targets.definitions import dump_yaml, read_target
from runs.targets.entries import TargetDefinition


def hidden_from(definition: TargetDefinition, *, base: str) -> HiddenFiles:
    """Return which files of a target's command exist on this machine but not inside its sandbox. Nothing is run."""
    if definition.kind != "cli":
        return HiddenFiles()
    roots, shown = containment().targets, []
    for path, use in [(definition.fields.get("cwd"), Use.WORK)] + [
        (folder, Use.SHOW) for folder in definition.fields.get("read_folders") or ()
    ]:
        try:
            if path and (base or Path(path).is_absolute()):
                shown.append(roots.place(path, use, base=base).path)
        except PathRefused:
            continue  # saving reports it
    return hidden_files(str(definition.fields.get("command_template", "")), containment(), shown)


def missing_program(definition: TargetDefinition) -> str:
    """Return a target's program that this machine lacks; empty if it exists, is unknown, or workers may be elsewhere."""
    words = literal_words(str(definition.fields.get("command_template", "")))
    if definition.kind != "cli" or not settings.EMBEDDED or not words:
        return ""
    is_here = "/" in words[0] and not words[0].startswith("/")
    return "" if is_here or shutil.which(words[0], path=containment().path) else words[0]


def show_folders(text: str, folders: Iterable[Path]) -> str:
    """Return an entry that also shows its commands these folders of the worker."""
    # The file that problems of an entry would name; it is valid already.
    entry = dict(read_target(text.encode(), "target").entry)
    key = next((key for key in entry if key in ("read_folders", "readFolders")), "read_folders")
    shown = entry.get(key)
    entry[key] = [*(shown if isinstance(shown, list) else []), *map(str, folders)]
    return dump_yaml(entry)
