"""Derive tier, tool and suite name of an eval file."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence

from evaluators.model import Json
from evaluators.statistics.staleness import is_placeholder
from scenarios.spec import ScenarioSpec

TIERS = ("golden", "labeled", "regression", "perturbation")
_PREFIXES = {"gs-": "golden", "ls-": "labeled", "rg-": "regression", "sp-": "perturbation"}


def tier_in_name(path: str) -> str:
    """Return the tier in a file's name (`weather.golden.json`), or nothing."""
    parts = posixpath.basename(path).lower().split(".")
    return next((tier for tier in TIERS if tier in parts[:-1]), "")


def tier_of(path: str, metadata: Mapping[str, Json] | None, ids: Sequence[str]) -> str:
    """Return the tier: the metadata's, else the file name's, else by the ids' prefixes, else `labeled`."""
    tier = (metadata or {}).get("tier")
    if isinstance(tier, str) and tier and not is_placeholder(tier):
        return tier
    by_id = Counter(_PREFIXES[id[:3]] for id in ids if id[:3] in _PREFIXES)
    return tier_in_name(path) or (by_id.most_common(1)[0][0] if by_id else "labeled")


def tool_of(path: str, metadata: Mapping[str, Json] | None, specs: Sequence[ScenarioSpec]) -> str:
    """Return the tool: from the metadata, else from the file's name, else the most expected one."""
    tool = (metadata or {}).get("toolName")
    if isinstance(tool, str) and tool and not is_placeholder(tool):
        return tool
    if tier_in_name(path):
        return posixpath.basename(path).split(".")[0].replace("-", "_")
    called = Counter(
        name for spec in specs if spec.criteria.expect for name in spec.criteria.expect.tools_called or ()
    )
    return called.most_common(1)[0][0] if called else ""


def suite_names(paths: Sequence[str], *, alone: str = "") -> dict[str, str]:
    """Return suite names by file: the stem, or the path if stems are equal.

    `alone` is the name of an upload with a single file.
    """
    stems = {path: posixpath.splitext(path)[0] for path in paths}
    if alone and len(stems) == 1:
        return dict.fromkeys(stems, alone)
    counts = Counter(posixpath.basename(stem) for stem in stems.values())
    return {
        path: stem if counts[posixpath.basename(stem)] > 1 else posixpath.basename(stem)
        for path, stem in stems.items()
    }
