"""The guidance that lately improved its suite, with what changed in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from evalhub.teams.models import Project
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from runs.compare.lost_scenarios import BrokenScenario, largest_gains
from runs.compare.shown_changes import ShownChange
from runs.compare.stored_changes import pass_changes
from runs.models import Run
from runs.models.run import NOT_CONFIRMING, RunState
from runs.results.digests import digests_of
from scenarios.models import Guidance
from scenarios.text_difference import DiffLine, lines_of, text_difference

MOST_READ = 400
"""The newest runs with guidance that are looked through."""
GAINS_SHOWN = 3
LINES_SHOWN = 6


@dataclass(frozen=True)
class ImprovedGuidance:
    """A version with which a run improved on its baseline, which had another and the same tool."""

    before: Guidance
    after: Guidance
    change: ShownChange
    """The pass rate's."""
    run: Run
    gained: Sequence[BrokenScenario]
    """The scenarios that pass more often than in the baseline, the largest gain first."""
    changed_lines: Sequence[DiffLine]
    """The lines that were added or removed."""

    @property
    def document(self) -> str:
        """The name of the version's first document."""
        return str(self.after.files[0]["path"]).rpartition("/")[2] if self.after.files else "guidance"

    @property
    def shown_lines(self) -> Sequence[DiffLine]:
        return self.changed_lines[:LINES_SHOWN]


class _Row(NamedTuple):
    run: int
    baseline: int
    finished: datetime
    verdict: str
    suite: int
    guidance: int
    before: int
    tool: str
    tool_before: str
    is_lift: bool | None

    @property
    def is_by_guidance(self) -> bool:
        """Whether another guidance, with the same tool, improved it; lifts have cards of their own."""
        return (
            not self.is_lift
            and self.verdict == ChangeVerdict.IMPROVED
            and self.guidance != self.before
            and self.tool == self.tool_before
        )


_COLUMNS = (
    *("pk", "baseline_id", "finished", "verdict", "suite_id", "guidance_id", "baseline__guidance_id"),
    *("tool_version", "baseline__tool_version", "options__lift"),
)


def improved_guidance(project: Project, *, since: datetime, most: int) -> list[ImprovedGuidance]:
    """Return the versions whose newest run since then improved by the pass rate, the surest first.

    One query, four more where there are such versions.
    """
    runs = Run.objects.filter(NOT_CONFIRMING, project=project, state=RunState.FINISHED, finished__gte=since)
    both = runs.exclude(guidance=None).exclude(baseline__guidance=None).order_by("-pk")
    newest: dict[tuple[int, int], _Row] = {}
    for row in (_Row(*values) for values in both.values_list(*_COLUMNS)[:MOST_READ]):
        newest.setdefault((row.suite, row.guidance), row)
    better = {row.run: row for row in newest.values() if row.is_by_guidance}
    changes = {
        run: change
        for run, change in (pass_changes(list(better)) if better else {}).items()
        if change.verdict is ChangeVerdict.IMPROVED
    }
    surest = sorted(changes, key=lambda run: _certainty(changes[run]), reverse=True)[:most]
    if not surest:
        return []
    loaded = (
        Run.objects.select_related("suite", "target")
        .only("finished", "suite__name", "target__name")
        .in_bulk(surest)
    )
    keys = {key for run in surest for key in (better[run].before, better[run].guidance)}
    versions = Guidance.objects.in_bulk(keys)
    digests = digests_of([key for run in surest for key in (run, better[run].baseline)])
    improved = []
    for run in surest:
        row = better[run]
        before, after = versions[row.before], versions[row.guidance]
        old, new = digests.get(row.baseline), digests.get(run)
        gained = largest_gains(old, new, GAINS_SHOWN) if old and new else []
        shown = ShownChange(changes[run])
        improved.append(
            ImprovedGuidance(before, after, shown, loaded[run], gained, _changed_lines(before, after))
        )
    return improved


def _certainty(change: MeasureChange) -> tuple[float, int]:
    """Return the least by which the pass rate rose, and the number of trials."""
    return change.lower or 0.0, sum(change.trials)


def _changed_lines(before: Guidance, after: Guidance) -> list[DiffLine]:
    old, new = ({each["path"]: each["content"] for each in side.files} for side in (before, after))
    pairs = ((lines_of(old.get(path, "")), lines_of(new.get(path, ""))) for path in {**old, **new})
    differences = [text_difference(*pair) for pair in pairs]
    return [
        line
        for difference in differences
        if difference
        for hunk in difference.hunks
        for line in hunk
        if line.look
    ]
