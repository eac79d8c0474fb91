"""Differences of the runs' guidance, tool descriptions, and definitions of targets and judges, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.models import Run
from runs.models.usage import surface_hash, surfaces_of
from runs.targets.definitions import NO_RESULT
from scenarios.models import Guidance
from scenarios.text_difference import TextDifference, lines_of, text_difference


@dataclass(frozen=True)
class NamedDifference:
    """The difference of one document."""

    name: str
    text: TextDifference | None
    """None if it is too long."""


PARTS = {"guidance": "Guidance", "target": "Target", "judge": "Judge", "tool": "Tool's descriptions"}


def differing_parts(base: Run, new: Run) -> dict[str, str]:
    """Return which of guidance, target, judge and tool descriptions differ, with their labels. No query."""
    judges = [run.fingerprint.get("judge_sha256") for run in (base, new)]
    differs = {
        "guidance": base.guidance_id != new.guidance_id,
        "target": base.target_version_id != new.target_version_id,
        "judge": all(judges) and judges[0] != judges[1],
        "tool": surface_hash(base) != surface_hash(new),
    }
    return {name: label for name, label in PARTS.items() if differs[name]}


def text_differences(base: Run, new: Run, part: str) -> list[NamedDifference]:
    """Return the differing documents of a part, by path. At most one query; expects target versions to be loaded."""
    documents = {"guidance": _guidance, "target": _targets, "judge": _judges, "tool": _tools}
    before, after = documents[part](base, new)
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


def _judges(*runs: Run) -> list[dict[str, str]]:
    texts: dict[int, dict[str, str]] = {run.pk: {} for run in runs}
    columns = ("run_id", "targetversion__target__name", "targetversion__definition")
    versions = Run.judge_versions.through.objects.filter(run__in=texts).values_list(*columns)
    for run, name, definition in versions:
        texts[run][name] = _definition_text(definition)
    return [texts[run.pk] for run in runs]


def _tools(*runs: Run) -> list[dict[str, str]]:
    surfaces = surfaces_of(runs[0].project_id, [surface_hash(run) for run in runs])
    return [
        {name: text for surface in run_surfaces for name, text in surface.documents.items()}
        for run_surfaces in surfaces
    ]


def _definition_text(definition: Mapping[str, Any]) -> str:
    relevant = {name: value for name, value in definition.items() if name not in NO_RESULT}
    return json.dumps(relevant, indent=2, sort_keys=True, ensure_ascii=False) if relevant else ""
