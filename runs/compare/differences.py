"""Compare the fingerprints of two runs: what changed, which changes are likely causes, which were on purpose.

A change on purpose, such as of the guidance or the model, means that the tool isn't blamed for its effects.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaluators.statistics.measure_change import ChangeVerdict
from runs.models import Run
from runs.models.comparison import AlertKind
from runs.models.run import Trigger
from runs.results.comparability import standards_of
from runs.targets.definitions import NO_RESULT
from scenarios.models import Guidance

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


SCENARIOS = "scenarios"
FACTORS: dict[str, tuple[str, ...]] = {
    "tool": ("tool_version", "tool_files"),
    "guidance": ("guidance",),
    "model": ("model",),
    "judge": ("judge", "judge_sha256", "threshold"),
    "target": ("target", "target_sha256", "endpoint", "provider", "provider_version"),
    "evalhub": ("evalhub",),
    "sandbox": ("sandbox",),
    SCENARIOS: ("suite_sha256", "fixture", "rubric", "gates"),
}
"""What a result depends on, by its parts of the fingerprint, the likeliest cause first."""
MOST_REGRESSIONS = 50
"""Newest earlier regressions that are counted."""


@dataclass(frozen=True)
class Cause:
    """One factor that changed since the baseline."""

    factor: str
    differences: tuple[FingerprintDifference, ...]
    regressions: int
    """Earlier regressions of the project in which it changed too."""
    of: int
    """Earlier regressions."""


def changed_factors(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the factors in which two fingerprints differ; parts that only one knows don't count."""
    return [
        factor
        for factor, parts in FACTORS.items()
        if any(part in before and part in after and before[part] != after[part] for part in parts)
    ]


def causes_of(run: Run, baseline: Run) -> list[Cause]:
    """Return what changed since a run's baseline, in the order of `FACTORS`. Up to three queries.

    Scenarios did not where only the tool's own files in their fixtures changed. Expects both runs' guidance to be loaded.
    """
    changed = changed_factors(baseline.fingerprint, run.fingerprint)
    if SCENARIOS in changed and only_tool_changed(baseline, run):
        changed.remove(SCENARIOS)
    rows = {row.label: row for row in fingerprint_differences(baseline, run)}
    counts, of = _earlier(run)
    return [
        Cause(
            factor,
            tuple(rows[LABELS[part]] for part in FACTORS[factor] if LABELS.get(part) in rows),
            counts[factor],
            of,
        )
        for factor in changed
    ]


def _earlier(run: Run) -> tuple[Counter[str], int]:
    """Return how often each factor changed in the project's earlier regressions, and their number."""
    regressed = Run.objects.filter(
        project=run.project_id, verdict=ChangeVerdict.REGRESSED, pk__lt=run.pk, baseline__isnull=False
    ).order_by("-pk")
    pairs = list(regressed.values_list("baseline__fingerprint", "fingerprint")[:MOST_REGRESSIONS])
    return Counter(factor for pair in pairs for factor in changed_factors(*pair)), len(pairs)


GUIDANCE, MODEL, JUDGE = "guidance", "model", "judge"


def changed_on_purpose(baseline: Run, run: Run) -> frozenset[str]:
    """Return which of `GUIDANCE`, `MODEL` and `JUDGE` differ.

    Runs of older releases don't know their model and judge, and imported ones may not know their guidance.
    """
    is_unknown = baseline.trigger == Trigger.IMPORT and baseline.guidance_id is None
    changed = set() if is_unknown or baseline.guidance_id == run.guidance_id else {GUIDANCE}
    for part, setting in (("model", MODEL), ("judge", JUDGE), ("judge_sha256", JUDGE)):
        old, new = baseline.fingerprint.get(part), run.fingerprint.get(part)
        if old and new and old != new:
            changed.add(setting)
    return frozenset(changed)


def kind_of_regression(baseline: Run, run: Run) -> AlertKind | None:
    """Return the kind of alert that a regression raises; None after a change of judge, which says nothing of the run."""
    changed = changed_on_purpose(baseline, run)
    if JUDGE in changed:
        return None
    return AlertKind.AFTER_CHANGE if changed else AlertKind.REGRESSION


def change_words(baseline: Run | None, run: Run) -> str:
    """Return what was changed on purpose, such as `after guidance 7 and model large`; empty if nothing is known to be.

    Expects the run's guidance to be loaded.
    """
    changed = changed_on_purpose(baseline, run) if baseline else frozenset()
    words = []
    if GUIDANCE in changed and run.guidance is not None:
        words.append(guidance_words(run.guidance))
    if MODEL in changed:
        words.append(f"model {run.fingerprint['model']}")
    if JUDGE in changed:
        words.append("a change of judge")
    after = f"after {' and '.join(words)}" if words else ""
    removed = "without guidance" if GUIDANCE in changed and run.guidance is None else ""
    return " ".join(filter(None, (removed, after)))


def guidance_words(guidance: Guidance | None) -> str:
    """Return a version of guidance in a sentence, such as `guidance 7` or `guidance shorter`."""
    return f"guidance {guidance.name or guidance.number}" if guidance else "no guidance"


def worse_after(run: Run) -> str:
    """Return what an alert after a change is called, such as `Worse after guidance 7`. Expects the baseline to be loaded."""
    return f"Worse {change_words(run.baseline, run) or 'after a change'}"
