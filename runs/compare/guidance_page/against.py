"""Read two versions of guidance for their comparison page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.compare.guidance.guidance_comparison import by_change
from runs.compare.guidance.guidance_exposure import ExposureLevel
from runs.compare.guidance.guidance_findings import (
    DocumentDifference,
    Reasons,
    differences,
    findings,
)
from runs.compare.guidance.guidance_runs import FoundSetting, RunsBySide, settings_of, unusable_runs
from runs.compare.guidance.lift_answer import (
    ADDS,
    SHARE,
    SHARE_LABEL,
    LiftAnswer,
    compared_measures,
    read_answer,
)
from runs.compare.guidance.lift_findings import Lift, is_lift, read_lift, why_no_results
from runs.compare.measure_changes import PASS, RunComparison
from runs.compare.shown_changes import ForestGroup, ShownChange, ShownVerdict, draw_forest, shown_verdict
from runs.results.rates import Rate
from scenarios.models import Guidance


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
    chosen: RunsBySide | None
    """None where no setting had both versions."""
    compared: RunComparison | None = None
    verdict: ShownVerdict | None = None
    scenarios: Sequence[ScenarioChange] = ()
    levels: Sequence[ExposureLevel] = ()
    lift: Lift | None = None
    """What the skill adds, where the first version is the second without it."""
    stopped: Sequence[str] = ()
    """Why runs of the named launch, or of the newest one if nothing can be compared, measured nothing."""
    other_lifts: Sequence[LiftAnswer] = ()
    """The same without statements for each other setting in which both ran in turn."""

    @property
    def lift_rates(self) -> tuple[float | None, float | None] | None:
        """The pass rates without and with the skill; None while trials run, and where nothing could be compared."""
        change = (
            self.lift.compared.pass_rate if self.lift and self.chosen and not self.chosen.is_open else None
        )
        return (change.before, change.after) if change else None

    @property
    def opened_rate(self) -> Rate | None:
        """How many of the trials with the skill opened it; None where no agent's events would show it."""
        levels = self.levels if self.lift else ()
        return next((level.after for level in levels if level.name == "opened" and level.after.n), None)

    @property
    def lift_forest(self) -> list[ForestGroup]:
        """Return what the skill adds in each setting, and what changed since its previous version, as one picture."""
        sections = []
        for lift in (self.lift, *self.other_lifts) if self.lift else ():
            where = lift.chosen.setting.label
            sections.append((f"{where}: without → with the skill", _shown_measures(lift.compared)))
            if lift.previous:
                title = f"{where}: previous version, {lift.previous.guidance} → this one"
                sections.append((title, _shown_measures(lift.previous.compared)))
        return draw_forest(sections)

    @property
    def input_tokens(self) -> ShownChange | None:
        """The change of the input tokens of a trial."""
        if self.verdict is None:
            return None
        return next((each for each in self.verdict.others if each.change.measure == "trial/tokens_in"), None)

    @property
    def name(self) -> str:
        """Return what files about it are called."""
        return f"guidance-{self.before.pk}-{self.after.pk}"


def guidance_against(
    before: Guidance, after: Guidance, *, setting: str = "", launch: int | None = None
) -> GuidanceAgainst:
    """Return two versions compared in one setting, by its label; else the first. Up to nine queries.

    Of a skill against no skill also what it adds: six more, up to eight for each other setting, and six for each
    previous version beside it.
    """
    settings = settings_of(before, after, launch)
    found_setting = next(
        (each for each in settings if each.setting.label == setting), next(iter(settings), None)
    )
    missing = unusable_runs(before, after, launch) if launch or found_setting is None else []
    stopped = [why_no_results(run) for run in missing]
    if found_setting is None:
        return GuidanceAgainst(before, after, differences(before, after), settings, None, stopped=stopped)
    chosen = found_setting.load()
    pair_findings = findings(before, after, chosen)
    others = [each for each in settings if each is not found_setting and each.interleaved]
    of_skill = is_lift(before, after)
    return GuidanceAgainst(
        before,
        after,
        pair_findings.documents,
        settings,
        chosen,
        pair_findings.compared,
        shown_verdict([*pair_findings.compared.headline, *pair_findings.compared.others]),
        [
            ScenarioChange(
                key, ShownChange(change), pair_findings.before.get(key), pair_findings.after.get(key)
            )
            for key, change in by_change(pair_findings.compared)
        ],
        pair_findings.levels,
        read_lift(chosen, pair_findings.compared) if of_skill else None,
        stopped,
        [_answer(before, after, each.load()) for each in others] if of_skill else (),
    )


def _answer(before: Guidance, after: Guidance, chosen: RunsBySide) -> LiftAnswer:
    return read_answer(chosen, findings(before, after, chosen).compared)


def _shown_measures(compared: RunComparison) -> list[ShownChange]:
    """Return the measures that a lift is about."""
    named = compared_measures(compared)
    return [
        ShownChange(named[name], called=SHARE_LABEL if name == SHARE else "")
        for name in (PASS, *ADDS)
        if name in named
    ]
