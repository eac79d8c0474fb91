"""What imported results say of the contents that they were measured on, by the hashes that evalhub wrote into them.

Imported results may lie on a version of their suite that was made from them, which holds no task and no gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evaluators.statistics.comparability import Reasons
from runs.models import Run
from scenarios.models import SuiteEntry, SuiteVersion

CONTENTS = "contents"
"""The key in the fingerprint of imported runs."""
SHORTEST_HASH = 12
_OF_CONTENT = frozenset(("task", "gates", "judge", "rubric", "pattern", "threshold", "time_limit"))
"""Parts that can't have changed if the contents are equal, or that results files don't contain."""
CHANGED: Reasons = ("task", "gates")
"""What may have changed where the contents differ."""


def contents_json(suite_hash: str, scenarios: Iterable[tuple[str, str]], *, by_id: bool) -> dict[str, Any]:
    """Return what the fingerprint of imported results keeps.

    `scenarios` are keys and hashes, empty if unknown. With `by_id`, somebody chose the results as a baseline: scenarios
    without a hash are compared by their ids, as tool-forge's contract has it.
    """
    hashes = {key: sha256 for key, sha256 in scenarios if sha256}
    return {"suite": suite_hash, "scenarios": hashes, "by_id": by_id}


def is_version(suite_hash: str, version: SuiteVersion) -> bool:
    """Return whether a hash in results names this version of a suite."""
    if len(suite_hash) < SHORTEST_HASH:
        return False
    return version.sha256.startswith(suite_hash) or version.config.get("eval_file_hash") == suite_hash


def with_imported_contents(before: Run, after: Run, reasons: dict[str, Reasons]) -> dict[str, Reasons]:
    """Return the reasons with what imported results say of their contents. No query if neither run is imported."""
    known = [run.fingerprint.get(CONTENTS) for run in (before, after)]
    if not any(known):
        return reasons
    same_suite = _is_of(known[0], known[1], after) or _is_of(known[1], known[0], before)
    old, new = (_hashes(run, own) for run, own in zip((before, after), known, strict=True))
    by_id = any(own and own["by_id"] for own in known)
    remaining = dict(reasons)
    for key in _keys(before) & _keys(after):
        first, second = old.get(key), new.get(key)
        if same_suite or (first and first == second) or (by_id and not (first and second)):
            left = tuple(part for part in remaining.pop(key, ()) if part not in _OF_CONTENT)
            remaining |= {key: left} if left else {}
        elif first and second:
            remaining.setdefault(key, CHANGED)
    return remaining


def _is_of(known: Mapping[str, Any] | None, others: Mapping[str, Any] | None, other: Run) -> bool:
    """Return whether results name the content of another run's suite."""
    if known is None:
        return False
    suite_hash = str(known["suite"])
    if others is not None:
        return len(suite_hash) >= SHORTEST_HASH and suite_hash == others["suite"]
    return is_version(suite_hash, other.suite_version)


def _hashes(run: Run, known: Mapping[str, Any] | None) -> dict[str, str]:
    if known is not None:
        return dict(known["scenarios"])
    entries = SuiteEntry.objects.filter(suite_version=run.suite_version_id)
    return dict(entries.values_list("scenario_version__scenario__key", "scenario_version__sha256"))


def _keys(run: Run) -> set[str]:
    return set(run.trial_set.values_list("scenario__key", flat=True))
