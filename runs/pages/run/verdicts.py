"""A run against its baseline, scenario by scenario, regressions first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.regression import Reasons, sentence
from evaluators.suite_result import compare_passes
from runs.models import Baseline, Run
from runs.pages.run.scenarios import ScenarioRow
from runs.warehouse.comparison import passed_of
from runs.warehouse.differences import Difference, fingerprint_differences
from runs.warehouse.run_trials import RunTrials


@dataclass(frozen=True)
class ChangedScenario:
    """A scenario that stands otherwise than in the baseline."""

    key: str
    verdict: str
    """regressed, improved, unmeasured, added or removed."""
    row: ScenarioRow | None
    """None where the run has no such scenario."""

    @property
    def trial(self) -> int | None:
        """The trial to look at: the first that failed, else the first."""
        trials = self.row.trials if self.row else ()
        telling = tuple(each for each in trials if each.mark in ("fail", "error"))
        return (telling or trials)[0].pk if trials else None

    @property
    def lost(self) -> tuple[str, ...]:
        """What failed in that trial, in the words of the layers."""
        trials = self.row.trials if self.row else ()
        return next((each.lost for each in trials if each.lost), ())


@dataclass(frozen=True)
class AgainstBaseline:
    """What became of a run's scenarios, and what else is not as it was."""

    changed: tuple[ChangedScenario, ...]
    differences: tuple[Difference, ...]
    regressions: int
    new_passes: int
    unmeasured: int
    """Scenarios of which one side has errors alone, so that nothing says whether they changed."""
    not_comparable: str = ""
    """How many scenarios cannot be compared and why; empty where all can."""


def against_baseline(
    run: Run, read: RunTrials, rows: Sequence[ScenarioRow], left_out: Mapping[str, Reasons]
) -> AgainstBaseline | None:
    """Return the run's comparison for its page, None without a baseline. Expects that to be loaded with its guidance.

    `left_out` are the scenarios that cannot be compared.
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
    verdicts = {
        "regressed": [key for key in compared.regressions if key not in unmeasured],
        "improved": [key for key in compared.new_passes if key not in unmeasured],
        "unmeasured": unmeasured,
        "added": compared.added,
        "removed": compared.removed,
    }
    changed = [ChangedScenario(key, word, by_key.get(key)) for word, keys in verdicts.items() for key in keys]
    return AgainstBaseline(
        changed=tuple(changed),
        differences=tuple(fingerprint_differences(baseline, run)),
        regressions=len(verdicts["regressed"]),
        new_passes=len(verdicts["improved"]),
        unmeasured=len(unmeasured),
        not_comparable=sentence(list(compared.not_comparable.values())),
    )


def _only_errors(outcomes: Sequence[str]) -> bool:
    return set(outcomes) <= {"error"}


def pins_of(run: Run) -> list[Baseline]:
    """Return what the run is the baseline of. One query."""
    return list(Baseline.objects.filter(run=run).order_by("branch"))
