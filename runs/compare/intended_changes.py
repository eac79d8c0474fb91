"""Find what people changed on purpose between two runs, so the tool isn't blamed for its effects."""

from __future__ import annotations

from runs.models import Run
from runs.models.comparison import AlertKind
from runs.models.run import Trigger
from scenarios.models import Guidance

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
