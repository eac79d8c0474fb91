"""Write the console summary of a run (tool-forge eval runner, Console Summary)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.cells import cell_len, set_cell_size

from evaluators.grading.suite_result import CaseResult, SuiteRun, total_cases, total_duration
from evaluators.statistics.comparability import name_incomparable

WIDTH = 76
UNKNOWN = "·"
_RULE = 67
_LEAST_DESCRIPTION = 10
_LEAST_DURATION = 6
_GREEN, _RED, _YELLOW, _BOLD = "32", "31", "33", "1"

Paint = Callable[[str, str], str]
"""A function from a text and a colour number to coloured text."""


def suite_summary(
    run: SuiteRun, *, width: int = WIDTH, coloured: bool = False, most: int | None = None
) -> str:
    """Return the summary, at most `width` terminal cells wide where possible.

    Long descriptions are cut; errors, warnings and ids never are. With more than `most` cases, passed cases are
    only counted.
    """
    return "".join(f"{line}\n" for line in _lines(run, width, _colour if coloured else _plain, most))


def _colour(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _plain(text: str, code: str) -> str:
    return text


def _lines(run: SuiteRun, width: int, paint: Paint, most: int | None) -> Iterator[str]:
    rule = min(width, _RULE)
    title = f"═══ {run.tool_name or 'evals'} — {run.tier} evals "
    yield paint(title + "═" * max(0, rule - cell_len(title)), _BOLD)
    few = most is None or len(run.cases) <= most
    shown = run.cases if few else tuple(case for case in run.cases if not case.passed)
    ids = max((cell_len(case.id) for case in shown), default=0)
    durations = max((len(_duration(case.duration_ms)) for case in shown), default=0)
    room = width - len("  ✓ ") - ids - 2 * len("  ") - max(durations, _LEAST_DURATION)
    for case in shown:
        yield from _case(case, ids, max(room, _LEAST_DESCRIPTION), paint)
    if not few:
        yield f"  … {len(run.cases) - len(shown)} more cases passed"
    yield "─" * rule
    yield _totals(run)
    yield from _changes(run, paint)
    yield from _warnings(run, paint)


def _case(case: CaseResult, ids: int, room: int, paint: Paint) -> Iterator[str]:
    mark = paint("✓", _GREEN) if case.passed else paint("✗", _RED)
    description = _fit(case.description, room)
    yield f"  {mark} {set_cell_size(case.id, ids)}  {description}  {_duration(case.duration_ms)}"
    trial = case.shown_trial
    if not case.passed:
        error = f"agent error: {trial.error}" if trial.outcome == "error" else trial.error
        yield paint(f"    → {error}", _RED)
    for warning in trial.warnings:
        yield paint(f"    ⚠ {warning}", _YELLOW)
    if trial.vacuous:
        yield paint("    ⚠ Nothing was asserted, so it passed as vacuous.", _YELLOW)


def _duration(milliseconds: int | None) -> str:
    return UNKNOWN if milliseconds is None else f"{milliseconds}ms"


def _fit(text: str, room: int) -> str:
    line = " ".join(text.split())
    return set_cell_size(line, room) if cell_len(line) <= room else set_cell_size(line, room - 1) + "…"


def _totals(run: SuiteRun) -> str:
    totals = total_cases(run.cases)
    timed = sum(case.duration_ms is not None for case in run.cases)
    of = f" of {timed} cases" if 0 < timed < len(run.cases) else ""
    return (
        f"  {totals['passed']}/{totals['totalCases']} passed | {totals['failed']} failed | "
        f"{totals['skippedAssertions']} skipped assertions | {_duration(total_duration(run.cases))} total{of}"
    )


def _changes(run: SuiteRun, paint: Paint) -> Iterator[str]:
    if run.baseline is None:
        return
    comparison = run.comparison
    for ids, title, code in (
        (comparison.regressions, "REGRESSIONS", _RED),
        (comparison.new_passes, "New passes", _GREEN),
        (comparison.added, "Added", ""),
        (comparison.removed, "Removed", ""),
    ):
        if ids:
            line = f"  {title} against {run.baseline.number or run.baseline.run_id} ({len(ids)}): {', '.join(ids)}"
            yield paint(line, code) if code else line
    if changed := name_incomparable(run.not_comparable):
        # The contract counts them above all the same.
        yield paint(f"  ! {changed}", _YELLOW)


def _warnings(run: SuiteRun, paint: Paint) -> Iterator[str]:
    warnings = list(run.staleness_warnings)
    if run.stale and run.generated_hash:
        # The contract shortens a mismatch on the console; the file has the full sentence.
        hashes = f"(generated: {run.generated_hash}, current: {run.description_hash})"
        warnings = [f"Description hash mismatch {hashes}", *(text for text in warnings if not _is_hash(text))]
    for text in warnings:
        yield paint(f"  ⚠ {text}", _YELLOW)


def _is_hash(warning: str) -> bool:
    return " generated against description hash " in warning
