"""Write the console summary of a run (tool-forge eval runner, Console Summary)."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size

from evaluators.grading.suite_result import CaseResult, SuiteRun, total_cases, total_duration
from evaluators.statistics.comparability import name_incomparable

_UNKNOWN = "·"
_WIDTH = 76
_RULE = 67
_LEAST_DESCRIPTION = 10
_LEAST_DURATION = 6


def suite_summary(run: SuiteRun) -> str:
    """Return the summary, at most 76 terminal cells wide where possible.

    Long descriptions are cut; errors, warnings and ids never are.
    """
    return "".join(f"{line}\n" for line in _lines(run))


def _lines(run: SuiteRun) -> Iterator[str]:
    title = f"═══ {run.tool_name or 'evals'} — {run.tier} evals "
    yield title + "═" * max(0, _RULE - cell_len(title))
    ids = max((cell_len(case.id) for case in run.cases), default=0)
    durations = max((len(_duration(case.duration_ms)) for case in run.cases), default=0)
    room = _WIDTH - len("  ✓ ") - ids - 2 * len("  ") - max(durations, _LEAST_DURATION)
    for case in run.cases:
        yield from _case(case, ids, max(room, _LEAST_DESCRIPTION))
    yield "─" * _RULE
    totals = total_cases(run.cases)
    timed = sum(case.duration_ms is not None for case in run.cases)
    of = f" of {timed} cases" if 0 < timed < len(run.cases) else ""
    yield (
        f"  {totals['passed']}/{totals['totalCases']} passed | {totals['failed']} failed | "
        f"{totals['skippedAssertions']} skipped assertions | {_duration(total_duration(run.cases))} total{of}"
    )
    yield from _changes(run)
    yield from _warnings(run)


def _case(case: CaseResult, ids: int, room: int) -> Iterator[str]:
    line = " ".join(case.description.split())
    description = set_cell_size(line, room) if cell_len(line) <= room else set_cell_size(line, room - 1) + "…"
    mark = "✓" if case.passed else "✗"
    yield f"  {mark} {set_cell_size(case.id, ids)}  {description}  {_duration(case.duration_ms)}"
    trial = case.shown_trial
    verdict = trial.verdict
    if not case.passed:
        yield f"    → agent error: {verdict.error}" if trial.outcome == "error" else f"    → {verdict.error}"
    for warning in verdict.warnings:
        yield f"    ⚠ {warning}"
    if verdict.vacuous:
        yield "    ⚠ Nothing was asserted, so it passed as vacuous."


def _duration(milliseconds: int | None) -> str:
    return _UNKNOWN if milliseconds is None else f"{milliseconds}ms"


def _changes(run: SuiteRun) -> Iterator[str]:
    if run.baseline is None:
        return
    changes = {"REGRESSIONS": run.comparison.regressions, "New passes": run.comparison.new_passes}
    for title, ids in changes.items():
        if ids:
            yield f"  {title} against {run.baseline.number or run.baseline.run_id} ({len(ids)}): {', '.join(ids)}"
    if changed := name_incomparable(run.not_comparable):
        # The contract counts them above all the same.
        yield f"  ! {changed}"


def _warnings(run: SuiteRun) -> Iterator[str]:
    warnings = list(run.staleness_warnings)
    if run.stale and run.generated_hash:
        # The contract shortens a mismatch on the console; the file has the full sentence.
        hashes = f"(generated: {run.generated_hash}, current: {run.description_hash})"
        warnings = [
            f"Description hash mismatch {hashes}",
            *(text for text in warnings if " generated against description hash " not in text),
        ]
    for text in warnings:
        yield f"  ⚠ {text}"
