"""Read two versions of guidance for their comparison page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evaluators.regression import MeasureChange
from runs.models import JudgingRecord, Run
from runs.pages.changes import ShownChange, ShownVerdict, shown_verdict
from runs.warehouse.guidance_comparison import by_change, compare_chosen
from runs.warehouse.guidance_exposure import ExposedTrial, Level, exposed_trials, levels, opening, quoting
from runs.warehouse.guidance_runs import ChosenRuns, FoundSetting, settings_of
from runs.warehouse.measure_changes import RunComparison
from runs.warehouse.measures import unit_of
from scenarios.models import Guidance
from scenarios.text_difference import Hunk, TextDifference, lines_of, text_difference

MOST_EXPOSED = 5
"""Newest runs of each side whose trials are read: for exposure, quotes and the judge's reasons."""
MOST_REASONS = 20
"""Scenarios whose judge's reasons are shown."""
LONGEST_REASON = 600


@dataclass(frozen=True)
class Link:
    """A scenario with a trial in which it quotes or opens guidance."""

    scenario: str
    trial: int
    side: str


@dataclass(frozen=True)
class DocumentDifference:
    """A document in both versions."""

    path: str
    difference: TextDifference | None
    """None if too long to compare."""
    notes: Sequence[Sequence[Link]]
    """For each hunk, the scenarios that quote a line of it."""
    opened: Sequence[Link]


@dataclass(frozen=True)
class Reasons:
    """A judge's reasoning about one trial."""

    trial: int
    score: float | None
    text: str


@dataclass(frozen=True)
class ScenarioChange:
    """A scenario on both sides."""

    key: str
    change: ShownChange
    before: Reasons | None
    after: Reasons | None


@dataclass(frozen=True)
class GuidanceAgainst:
    """Content of the page."""

    before: Guidance
    after: Guidance
    documents: Sequence[DocumentDifference]
    settings: Sequence[FoundSetting]
    chosen: ChosenRuns | None
    """None where no setting had both versions."""
    compared: RunComparison | None = None
    verdict: ShownVerdict | None = None
    scenarios: Sequence[ScenarioChange] = ()
    levels: Sequence[Level] = ()

    @property
    def reads_all(self) -> bool:
        """Whether exposure and reasons are of every compared run."""
        sides = (self.chosen.before, self.chosen.after) if self.chosen else ()
        return all(len(side) <= MOST_EXPOSED for side in sides)

    @property
    def input_tokens(self) -> ShownChange | None:
        """The change of the input tokens of a trial."""
        if self.verdict is None:
            return None
        return next(
            (each for each in self.verdict.others if each.change.rule.name == "trial/tokens_in"), None
        )

    def unit(self, change: ShownChange) -> str:
        """Return the unit of a measure's values."""
        layer, _, name = change.change.rule.name.partition("/")
        return unit_of(layer, name)[0]


def guidance_against(
    before: Guidance, after: Guidance, *, setting: str = "", launch: int | None = None
) -> GuidanceAgainst:
    """Return two versions compared in one setting, by its label; else the first. Up to eight queries."""
    settings = settings_of(before, after, launch)
    found = next((each for each in settings if each.setting.label == setting), next(iter(settings), None))
    if found is None:
        return GuidanceAgainst(before, after, differences(before, after), settings, None)
    chosen = found.load()
    compared = compare_chosen(chosen)
    newest = (chosen.before[:MOST_EXPOSED], chosen.after[:MOST_EXPOSED])
    runs = (*newest[0], *newest[1])
    sides = [{run.pk for run in side} for side in newest]
    every = exposed_trials(runs)
    before_trials, after_trials = ([each for each in every if each.run in side] for side in sides)
    ordered = by_change(compared)
    reasons = _reasons(runs, sides, [key for key, _ in ordered[:MOST_REASONS]])
    return GuidanceAgainst(
        before,
        after,
        differences(before, after, before_trials, after_trials),
        settings,
        chosen,
        compared,
        shown_verdict([*compared.headline, *compared.others]),
        [_scenario(key, change, *reasons) for key, change in ordered],
        levels(before_trials, after_trials, compared.scenarios),
    )


def differences(
    before: Guidance,
    after: Guidance,
    old_trials: Sequence[ExposedTrial] = (),
    new_trials: Sequence[ExposedTrial] = (),
) -> list[DocumentDifference]:
    """Return the documents that differ, each hunk with the scenarios that quote it."""
    old, new = ({each["path"]: each["content"] for each in side.files} for side in (before, after))
    quoted = quoting(old_trials), quoting(new_trials)
    found = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        lines = [lines_of(side[path]) if path in side else [] for side in (old, new)]
        difference = text_difference(*lines)
        hunks = difference.hunks if difference else ()
        opened = [
            Link(scenario, trial, side)
            for side, trials in (("A", old_trials), ("B", new_trials))
            for scenario, trial in opening(trials, path).items()
        ]
        notes = [_links(path, hunk, *quoted) for hunk in hunks]
        found.append(DocumentDifference(path, difference, notes, opened))
    return found


Quoted = Mapping[tuple[str, int], Mapping[str, int]]


def _links(path: str, hunk: Hunk, old: Quoted, new: Quoted) -> list[Link]:
    """Return the scenarios whose trials quote a changed line: of A a removed one, of B an added one."""
    found = {
        (scenario, side): trial
        for line in hunk
        if line.look
        for side, number, quoted in (("A", line.before, old), ("B", line.after, new))
        for scenario, trial in quoted.get((path, number or 0), {}).items()
    }
    return [Link(scenario, trial, side) for (scenario, side), trial in sorted(found.items())]


def _reasons(
    runs: Sequence[Run], sides: Sequence[Collection[int]], keys: Sequence[str]
) -> list[dict[str, Reasons]]:
    """Return each side's last judging's reasons by scenario. One query."""
    rows = JudgingRecord.objects.filter(trial__run__in=runs, counts=True, trial__scenario__key__in=keys)
    columns = (
        "trial__run",
        "trial__scenario__key",
        "trial",
        "score",
        "content__reasoning",
        "content__negatives",
        "content__positives",
    )
    found: list[dict[str, Reasons]] = [{} for _ in sides]
    for run, key, trial, score, reasoning, negatives, positives in rows.order_by("pk").values_list(*columns):
        text = (reasoning or " ".join(negatives or positives or ()))[:LONGEST_REASON]
        for side, own in zip(sides, found, strict=True):
            if run in side:
                own[key] = Reasons(trial, score, text)
    return found


def _scenario(
    key: str, change: MeasureChange, before: Mapping[str, Reasons], after: Mapping[str, Reasons]
) -> ScenarioChange:
    return ScenarioChange(key, ShownChange(change), before.get(key), after.get(key))
