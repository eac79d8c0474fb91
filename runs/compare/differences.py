"""Compare the fingerprints of two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runs.models import Run
from runs.results.comparability import standards_of
from runs.targets.definitions import NO_RESULT

LABELS = {
    "tool_version": "Tool",
    "tool": "Tool",
    "tool_surface": "Tool's descriptions",
    "guidance": "Guidance",
    "model": "Model",
    "judge": "Judge",
    "threshold": "Judge threshold",
    "rubric": "Rubric",
    "provider": "Provider",
    "provider_version": "Provider's program",
    "target": "Target",
    "command_pattern": "Command pattern",
    "gates": "Gates",
    "evalhub": "evalhub",
    "sandbox": "Sandbox",
    "tool_files": "Tool's files",
    "target_sha256": "Target's definition",
    "judge_sha256": "Judge's definition",
    "fixture": "Fixture",
    "suite_version": "Suite version",
    "suite_sha256": "Suite",
}
"""Names of the fingerprint's parts, the likeliest cause of a change first, hashes last."""
_OF_SUITE = ("fixture", "suite_version", "suite_sha256")
"""Parts that another version of the tool changes, too, where it lies in the fixture."""
HASHES = frozenset(
    (
        "suite_sha256",
        "fixture",
        "guidance",
        "rubric",
        "tool_files",
        "tool_surface",
        "target_sha256",
        "judge_sha256",
    )
)
DIGITS = 8
LONGEST_VALUE = 300
"""Characters of a value in a target's definition."""
_HASH_OF = {"target": "target_sha256", "judge": "judge_sha256"}
_JOINED = frozenset(("suite_version", "suite_sha256", *_HASH_OF.values(), "provider_version"))
"""Parts that a run's page shows with another one."""
_ADDED_LATER = frozenset(_HASH_OF.values())
"""Parts missing from older releases' fingerprints, where they are unknown."""


class FingerprintPart(NamedTuple):
    """One part of a fingerprint, for display."""

    label: str
    text: str
    """Its name or value; empty if only its hash is known."""
    hash: str = ""
    """The first digits; empty if the part is shown in full."""


@dataclass(frozen=True)
class FingerprintDifference:
    """One part of the fingerprint, before and after."""

    label: str
    before: str
    after: str

    @property
    def same(self) -> bool:
        return self.before == self.after


def fingerprint_parts(run: Run) -> tuple[FingerprintPart, ...]:
    """Return the parts of a run's fingerprint that are known. Expects suite and guidance to be loaded."""
    parts = [
        _suite(run),
        *(
            FingerprintPart(LABELS[name], _name(name, run), _short(name, run))
            for name in LABELS
            if name not in _JOINED
        ),
    ]
    return tuple([part for part in parts if part.text or part.hash])


def _suite(run: Run) -> FingerprintPart:
    number = _value("suite_version", run)
    text = f"{run.suite.name} v{number}" if number else ""
    return FingerprintPart(LABELS["suite_version"], text, _short("suite_sha256", run))


def fingerprint_rows(before: Run, after: Run) -> list[FingerprintDifference]:
    """Return both fingerprints' parts, differences first. Expects the runs' guidance to be loaded."""
    names = [name for name in LABELS if _is_shown(name, before, after)]
    rows = [FingerprintDifference(LABELS[name], _label(name, before), _label(name, after)) for name in names]
    return sorted(rows, key=lambda row: row.same)


def fingerprint_differences(before: Run, after: Run) -> list[FingerprintDifference]:
    """Return the differences between two runs' fingerprints, the likeliest cause first.

    The suite isn't one where only the tool's own files (`target.files`) changed in it. One query if they did.
    """
    left_out = {LABELS[name] for name in _OF_SUITE} if only_tool_changed(before, after) else set()
    return [row for row in fingerprint_rows(before, after) if not row.same and row.label not in left_out]


def only_tool_changed(before: Run, after: Run) -> bool:
    """Return whether two versions of a suite differ in nothing but the files of the tool under test."""
    versions = {before.suite_version_id, after.suite_version_id}
    files = [_value("tool_files", run) for run in (before, after)]
    if not all(files) or files[0] == files[1] or len(versions) == 1:
        return False
    known = standards_of(versions)
    return known[before.suite_version_id] == known[after.suite_version_id]


def differing_values(runs: Sequence[Run]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the parts of the fingerprint that aren't the same in all runs: label, and value in each run.

    Expects the runs' guidance to be loaded.
    """
    rows = [(LABELS[name], tuple(_label(name, run) for run in runs)) for name in LABELS]
    return [row for row in rows if len(set(row[1])) > 1]


def definition_differences(
    whose: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[FingerprintDifference]:
    """Return the result-relevant fields in which two definitions of a target differ."""
    names = [name for name in {**before, **after} if name not in NO_RESULT]
    rows = [
        FingerprintDifference(f"{whose} {name}", _field(before, name), _field(after, name)) for name in names
    ]
    return [row for row in rows if not row.same]


def _field(definition: Mapping[str, Any], name: str) -> str:
    if name not in definition:
        return ""
    value = definition[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _is_shown(name: str, before: Run, after: Run) -> bool:
    known = [bool(_value(name, run)) for run in (before, after)]
    return all(known) if name in _ADDED_LATER else any(known)


def _label(name: str, run: Run) -> str:
    if name not in HASHES:
        return _value(name, run)
    # Runs from before the names were stored describe the same parts differently.
    title = _name(name, run) if name in ("guidance", "tool_surface") else ""
    return f"{title} {_short(name, run)}".strip()


def _value(name: str, run: Run) -> str:
    fingerprint: Mapping[str, Any] = run.fingerprint
    return str(fingerprint.get(name) or "")


def _short(name: str, run: Run) -> str:
    hashed = _HASH_OF.get(name, name)
    return _value(hashed, run)[:DIGITS] if hashed in HASHES else ""


def _name(name: str, run: Run) -> str:
    """Return a part's label: the name of hashed content, the value of anything else."""
    if name == "guidance":
        return str(run.guidance) if run.guidance and _value(name, run) else ""
    if name in HASHES:
        return str((run.fingerprint.get("names") or {}).get(name) or "")
    if name == "provider":
        return f"{_value(name, run)} {_value('provider_version', run)}".strip()
    return _value(name, run)
