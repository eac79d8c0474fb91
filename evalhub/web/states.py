"""The words that people read for what came out, each with its class, sign and colour, and bars of calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from django.utils.safestring import SafeString, mark_safe

from evaluators.statistics.measure_change import ChangeVerdict

VERDICTS = {
    ChangeVerdict.REGRESSED: "is-regressed",
    ChangeVerdict.IMPROVED: "is-improved",
    ChangeVerdict.CHANGED: "is-same",
    ChangeVerdict.EQUIVALENT: "is-equal",
    ChangeVerdict.AS_EXPECTED: "is-same",
    ChangeVerdict.SMALL: "is-same",
    ChangeVerdict.NO_EVIDENCE: "is-same",
    ChangeVerdict.TOO_LITTLE: "is-little",
    ChangeVerdict.NOT_COMPARABLE: "is-stale",
}
"""The classes of verdicts, whose words are their labels."""
STATES: dict[str, tuple[str, str]] = {
    "pass": ("is-passed", "passed"),
    "fail": ("is-failed", "failed"),
    "error": ("is-error", "error"),
    "queued": ("is-queued", "queued"),
    "preparing": ("is-running", "preparing"),
    "running": ("is-running", "running"),
    "finished": ("is-same", "finished"),
    "cancelled": ("is-cancelled", "cancelled"),
    **{verdict.value: (look, verdict.label.lower()) for verdict, look in VERDICTS.items()},
    "configuration_changed": ("is-suspected", "configuration changed"),
    "worse": ("is-regressed", "worse"),
    "better": ("is-improved", "better"),
    "same": ("is-same", "same"),
    "none": ("is-not-run", "not run"),
    "only_with": ("is-improved", "only with the skill"),
    "only_without": ("is-regressed", "only without the skill"),
    "flips": ("is-flaky", "flips"),
    "always": ("is-same", "always holds"),
    "never": ("is-failed", "never holds"),
    "lower": ("is-little", "lower"),
    "higher": ("is-little", "higher"),
    "errors": ("is-error", "errors"),
    "tool_not_started": ("is-error", "tool not started"),
    "unchecked": ("is-little", "unchecked"),
    "vacuous": ("is-little", "vacuous"),
    "below_release_rule": ("is-failed", "below threshold"),
    "as_before": ("is-same", "as before"),
    "undecided": ("is-little", "undecided"),
    "new_line": ("is-little", "new line"),
    "experiment": ("is-little", "experiment"),
    "drift": ("is-suspected", "drift"),
    "dearer": ("is-suspected", "dearer"),
    "slower": ("is-suspected", "slower"),
    "intended": ("is-cancelled", "intended"),
    "suspected": ("is-suspected", "suspected"),
    "confirmed": ("is-regressed", "confirmed"),
    "not_confirmed": ("is-same", "not confirmed"),
    "solid": ("is-solid", "solid"),
    "flaky": ("is-flaky", "flaky"),
    "broken": ("is-broken", "broken"),
    "new": ("is-little", "new"),
    "met": ("is-passed", "release rule met"),
    "missed": ("is-failed", "release rule missed"),
    "not_measured": ("is-little", "release rule not measured"),
    "unmeasured": ("is-error", "errors only"),
    "proved": ("is-passed", "proved"),
    "unproved": ("is-little", "unproved"),
    "passes_without_agent": ("is-failed", "passes without an agent"),
    "solution_fails": ("is-failed", "solution fails"),
    "added": ("is-little", "new"),
    "removed": ("is-cancelled", "removed"),
    "sessions": ("is-same", "sessions"),
    "stale": ("is-stale", "stale"),
    "untriaged": ("is-regressed", "untriaged"),
    "acknowledged": ("is-same", "acknowledged"),
    "investigating": ("is-running", "investigating"),
    "fixed": ("is-passed", "fixed"),
    "named": ("is-regressed", "named"),
    "not_decided": ("is-error", "undecided"),
    "incomparable": ("is-error", "not comparable"),
    "wont_fix": ("is-cancelled", "won't fix"),
    "invalid": ("is-cancelled", "not a regression"),
    "ready": ("is-passed", "ready"),
    "cannot start": ("is-error", "cannot start"),
    "proposed": ("is-suspected", "proposed"),
    "checking": ("is-running", "checking"),
    "not checked": ("is-little", "not checked"),
    "no answer": ("is-little", "no answer"),
    "results only": ("is-same", "results only"),
    "working": ("is-running", "working"),
    "idle": ("is-queued", "idle"),
    "lost": ("is-error", "lost"),
    "sending": ("is-running", "sending"),
    "sent": ("is-passed", "sent"),
    "failed": ("is-failed", "failed"),
    "skipped": ("is-cancelled", "skipped"),
}

FORMATS = {
    "agent_skills": "Agent Skills",
    "llm_tool_test": "llm-tool-test",
    "agentv": "AgentV",
    "tool_forge": "tool-forge",
    "sessions": "sessions",
    "promptfoo": "promptfoo",
    "junit": "JUnit",
    "inspect": "Inspect",
}
"""File formats by their names for people."""


SIGNS = {
    "is-passed": ("✓", "better"),
    "is-failed": ("✕", "worse"),
    "is-regressed": ("▼", "worse"),
    "is-improved": ("▲", "better"),
    "is-same": ("=", "muted"),
    "is-error": ("!", "caution"),
    "is-not-run": ("–", "muted"),
}
"""The sign and the colour of a word outside a badge, by its class."""


def look_of_state(state: str) -> tuple[str, str]:
    """Return class and word of a state; an unlisted state is its own word."""
    return STATES.get(state, ("", state.replace("_", " ")))


def sign_of_state(state: str) -> tuple[str, str]:
    """Return sign and colour of a state's word outside a badge; both empty for one that has none."""
    return SIGNS.get(look_of_state(state)[0], ("", ""))


TALL, THIN, GAP = 12, 6, 2
"""Heights in pixels of the failed part and of the others, so that they differ without colour, and between halves."""


def draw_calls(halves: Sequence[tuple[int, int]], *, most: int, label: str) -> SafeString:
    """Return a bar for each pair of calls and failed calls, on a scale that ends at `most` calls.

    Two halves are before and after something: the first is grey, because it is the past.
    """
    height = len(halves) * (TALL + GAP) - GAP
    rects = "".join(
        _half(calls, failed, most, n * (TALL + GAP), is_past=n + 1 < len(halves))
        for n, (calls, failed) in enumerate(halves)
    )
    return mark_safe(  # noqa: S308  # only numbers and an escaped text
        f'<svg class="calls" role="img" aria-label="{escape(label)}" width="100%" height="{height}">{rects}</svg>'
    )


def _half(calls: int, failed: int, most: int, top: int, *, is_past: bool) -> str:
    return "".join(
        f'<rect class="{name}{" is-past" if is_past else ""}" x="{start / most:.2%}" y="{top + (TALL - height) / 2:g}" '
        f'width="{amount / most:.2%}" height="{height}"/>'
        for name, start, amount, height in _parts(calls, failed)
        if amount and most
    )


def _parts(calls: int, failed: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield each part's class, where it begins, its calls, and its height."""
    yield "failed", 0, failed, TALL
    yield "worked", failed, calls - failed, THIN
