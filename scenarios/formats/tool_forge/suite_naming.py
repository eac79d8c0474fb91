"""What an eval file is called: its tier, its tool and its suite."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence

from evaluators.model import Json
from evaluators.staleness import is_placeholder
from scenarios.spec import ScenarioSpec

TIERS = ("golden", "labeled", "regression", "perturbation")
_PREFIXES = {"gs-": "golden", "ls-": "labeled", "rg-": "regression", "sp-": "perturbation"}


def tier_in_name(path: str) -> str:
    """Return the tier that a file's name says (`weather.golden.json`), or nothing."""
    parts = posixpath.basename(path).lower().split(".")
    return next((tier for tier in TIERS if tier in parts[:-1]), "")


def tier_of(path: str, metadata: Mapping[str, Json] | None, ids: Sequence[str]) -> str:
    """Return the tier: the metadata's, else the file name's, else that of the ids, else `labeled`."""
    told = (metadata or {}).get("tier")
    if isinstance(told, str) and told and not is_placeholder(told):
        return told
    by_id = Counter(_PREFIXES[id[:3]] for id in ids if id[:3] in _PREFIXES)
    return tier_in_name(path) or (by_id.most_common(1)[0][0] if by_id else "labeled")


def tool_of(path: str, metadata: Mapping[str, Json] | None, specs: Sequence[ScenarioSpec]) -> str:
    """Return the tool: the metadata's, else the file name's before its tier, else the one most often expected."""
    told = (metadata or {}).get("toolName")
    if isinstance(told, str) and told and not is_placeholder(told):
        return told
    if tier_in_name(path):
        return posixpath.basename(path).split(".")[0].replace("-", "_")
    called = Counter(
        name for spec in specs if spec.criteria.expect for name in spec.criteria.expect.tools_called or ()
    )
    return called.most_common(1)[0][0] if called else ""


def suite_names(paths: Sequence[str], *, alone: str = "") -> dict[str, str]:
    """Name each file's suite by its stem, by its path where stems are the same.

    `alone` is the name of the upload where it is a single file.
    """
    stems = {path: posixpath.splitext(path)[0] for path in paths}
    if alone and len(stems) == 1:
        return dict.fromkeys(stems, alone)
    counts = Counter(posixpath.basename(stem) for stem in stems.values())
    return {
        path: stem if counts[posixpath.basename(stem)] > 1 else posixpath.basename(stem)
        for path, stem in stems.items()
    }
