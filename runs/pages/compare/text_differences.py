"""Differences of the runs' guidance and of their targets' definitions, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.models import Run
from runs.targets.versions import NO_RESULT
from scenarios.models import Guidance
from scenarios.text_difference import TextDifference, lines_of, text_difference


@dataclass(frozen=True)
class NamedDifference:
    """The difference of one document."""

    name: str
    text: TextDifference | None
    """None if it is too long."""


PARTS = {"guidance": "Guidance", "target": "Target"}


def differing_parts(base: Run, new: Run) -> dict[str, str]:
    """Return which of guidance and target differ, with their labels. No query."""
    differs = {
        "guidance": base.guidance_id != new.guidance_id,
        "target": base.target_version_id != new.target_version_id,
    }
    return {name: label for name, label in PARTS.items() if differs[name]}


def text_differences(base: Run, new: Run, part: str) -> list[NamedDifference]:
    """Return the differing documents of a part, by path. At most one query; expects target versions to be loaded."""
    before, after = _guidance(base, new) if part == "guidance" else _targets(base, new)
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return [
        NamedDifference(path, text_difference(lines_of(before.get(path, "")), lines_of(after.get(path, ""))))
        for path in paths
    ]


def _guidance(*runs: Run) -> list[dict[str, str]]:
    keys = [run.guidance_id for run in runs if run.guidance_id]
    files = dict(Guidance.objects.filter(pk__in=keys).values_list("pk", "files"))
    return [
        {str(each["path"]): str(each.get("content") or "") for each in files.get(run.guidance_id or 0, [])}
        for run in runs
    ]


def _targets(*runs: Run) -> list[dict[str, str]]:
    versions = [run.target_version for run in runs]
    return [{"definition": _definition_text(each.definition if each else {})} for each in versions]


def _definition_text(definition: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in definition.items() if name not in NO_RESULT}
    return json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False) if kept else ""
