"""Compare a run with its baseline by scenario, regressions first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.grading.suite_result import compare_passes
from evaluators.statistics.comparability import Reasons, describe_incomparable
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.causes import Cause, causes_of
from runs.compare.comparison import passed_of
from runs.compare.differences import FingerprintDifference, fingerprint_differences
from runs.launch.separation import Separation, separation_of
from runs.models import Baseline, Run
from runs.results.run_page.scenarios import ScenarioRow
from runs.results.run_trials import RunTrials


@dataclass(frozen=True)
class ChangedScenario:
    """A scenario that differs from the baseline."""

    key: str
    kind: str
    """A state: regressed or improved where the verdict's table of scenarios names it, else as of compared scenarios."""
    row: ScenarioRow | None
    """None if the run lacks the scenario."""

    @property
    def trial(self) -> int | None:
        """Return the trial to show: the first that failed, else the first."""
        trials = self.row.trials if self.row else ()
        wrong = tuple(each for each in trials if each.mark in ("fail", "error"))
        return (wrong or trials)[0].pk if trials else None

    @property
    def lost(self) -> tuple[str, ...]:
        """Return that trial's failure messages."""
        trials = self.row.trials if self.row else ()
        return next((each.lost for each in trials if each.lost), ())


@dataclass(frozen=True)
class AgainstBaseline:
    """A run's changes from its baseline."""

    changed: tuple[ChangedScenario, ...]
    differences: tuple[FingerprintDifference, ...]
    regressions: int
    new_passes: int
    unmeasured: int
    """Scenarios with only errors on one side."""
    not_comparable: str = ""
    """How many scenarios can't be compared and why; empty if none."""


def against_baseline(
    run: Run,
    read: RunTrials,
    rows: Sequence[ScenarioRow],
    left_out: Mapping[str, Reasons],
    named: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> AgainstBaseline | None:
    """Return the run's comparison with its baseline, None without one. Expects the baseline's guidance to be loaded.

    `left_out` are the scenarios that can't be compared, `named` those that the verdict's table says broke or improved:
    they come first, also where single trials failed before or pass still.
    """
    baseline = run.baseline
    if baseline is None:
        return None
    compared = compare_passes(passed_of(read.before), passed_of(read.outcomes), left_out)
    by_key = {row.key: row for row in rows}
    # The contract of suite results counts errors as failures, verdicts do not.
    unmeasured = [
        key
        for key in (*compared.regressions, *compared.new_passes)
        if _only_errors(read.before[key]) or _only_errors(read.outcomes[key])
    ]
    worse = [key for key in compared.regressions if key not in unmeasured]
    better = [key for key in compared.new_passes if key not in unmeasured]
    shown = {
        "regressed": named[0],
        "worse": [key for key in worse if key not in named[0]],
        "improved": named[1],
        "better": [key for key in better if key not in named[1]],
        "unmeasured": unmeasured,
        "added": compared.added,
        "removed": compared.removed,
    }
    changed = [ChangedScenario(key, kind, by_key.get(key)) for kind, keys in shown.items() for key in keys]
    return AgainstBaseline(
        changed=tuple(changed),
        differences=tuple(fingerprint_differences(baseline, run)),
        regressions=len(worse),
        new_passes=len(better),
        unmeasured=len(unmeasured),
        not_comparable=describe_incomparable(list(compared.not_comparable.values())),
    )


def _only_errors(outcomes: Sequence[str]) -> bool:
    return set(outcomes) <= {"error"}


def pins_of(run: Run) -> list[Baseline]:
    """Return the baselines that pin the run. One query."""
    return list(Baseline.objects.filter(run=run).order_by("branch"))


@dataclass(frozen=True)
class ShownCauses:
    """The causes of a regression."""

    causes: list[Cause]
    separation: Separation


def shown_causes(run: Run) -> ShownCauses | None:
    """Return what changed before a regression; None for other verdicts. Two queries, else none."""
    if run.verdict != ChangeVerdict.REGRESSED:
        return None
    separation = separation_of(run)
    return ShownCauses(causes_of(run, separation.baseline), separation) if separation else None
