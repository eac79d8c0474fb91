"""A line of runs as a picture: its pass rates, and the band where the newest run was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.safestring import SafeString

from evalhub.lib.numbers import percent
from evalhub.web.line_chart import LineOfRuns, draw_line
from evalhub.web.states import look_of_state
from evaluators.statistics.line import expected_range
from evaluators.statistics.measure_change import ChangeVerdict
from runs.models.run import has_too_many_errors
from runs.results.rates import Rate, run_rate
from runs.results.run_answers import RunAnswer

RUNS_SHOWN = 12
"""Runs of a line in its picture, the newest included."""
LONGEST_FLAG = 24


class DrawnRun(NamedTuple):
    """A run in a picture."""

    passed: int
    failed: int
    errors: int
    verdict: str
    tool_version: str
    pass_rate: float | None = None

    @property
    def rate(self) -> Rate:
        return run_rate(self)

    @property
    def is_measured(self) -> bool:
        """Whether its pass rate belongs in the picture of a line."""
        return bool(self.rate.n) and not has_too_many_errors(self.passed, self.failed, self.errors)


def line_of_runs(runs: Sequence[DrawnRun], answer: RunAnswer) -> LineOfRuns | None:
    """Return the picture of runs, the oldest first; None where the newest has no result.

    `answer` is the newest run's. The band is that of the runs before a regression.
    """
    if not runs or not runs[-1].rate.n:
        return None
    drawn = [*(run for run in runs[:-1] if run.is_measured), runs[-1]][-RUNS_SHOWN:]
    since = len(drawn) - 1
    if answer is RunAnswer.REGRESSED:
        while since and drawn[since - 1].verdict == ChangeVerdict.REGRESSED:
            since -= 1
    newest = drawn[-1].rate
    return LineOfRuns(
        rates=[run.rate.share for run in drawn],
        interval=(newest.low, newest.high),
        band=expected_range([(run.rate.share, run.rate.n) for run in drawn[:since]], newest.n),
        look=look_of_state(answer)[0],
        since=since if answer is RunAnswer.REGRESSED and since else None,
        flags=_flags(drawn),
    )


def draw_large(line: LineOfRuns, label: str) -> SafeString:
    """Return a line's large picture, for wide screens and for narrow ones."""
    wide, narrow = (
        draw_line(line, label=label, show=percent, is_narrow=is_narrow) for is_narrow in (False, True)
    )
    return wide + narrow


def _flags(runs: Sequence[DrawnRun]) -> dict[int, str]:
    """Return where the tool's version changed last: one flag, so that names don't lie over each other."""
    versions = [run.tool_version for run in runs]
    changes = [n for n in range(1, len(runs)) if versions[n] and versions[n] != versions[n - 1]]
    return {changes[-1]: versions[changes[-1]][:LONGEST_FLAG]} if changes else {}
