"""Read two versions of guidance for their comparison page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluators.statistics.measure_change import MeasureChange
from runs.compare.guidance.guidance_comparison import by_change
from runs.compare.guidance.guidance_exposure import ExposureLevel
from runs.compare.guidance.guidance_findings import (
    DocumentDifference,
    Findings,
    Reasons,
    differences,
    findings,
)
from runs.compare.guidance.guidance_runs import FoundSetting, RunsBySide, settings_of
from runs.compare.guidance.lift_findings import Lift, is_lift, lift_sentence, read_lift
from runs.compare.measure_changes import RunComparison
from runs.compare.shown_changes import ShownChange, ShownVerdict, shown_verdict
from runs.results.measures import unit_of
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
    other_lifts: Sequence[str] = ()
    """The same in a sentence for each other setting in which both ran in turn."""

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
    """Return two versions compared in one setting, by its label; else the first. Up to nine queries.

    Of a skill against no skill also what it adds: five more, and up to seven for each other setting.
    """
    settings = settings_of(before, after, launch)
    found = next((each for each in settings if each.setting.label == setting), next(iter(settings), None))
    if found is None:
        return GuidanceAgainst(before, after, differences(before, after), settings, None)
    chosen = found.load()
    own = findings(before, after, chosen)
    others = [each for each in settings if each is not found and each.interleaved]
    of_skill = is_lift(before, after)
    return GuidanceAgainst(
        before,
        after,
        own.documents,
        settings,
        chosen,
        own.compared,
        shown_verdict([*own.compared.headline, *own.compared.others]),
        [_scenario(key, change, own) for key, change in by_change(own.compared)],
        own.levels,
        read_lift(chosen, own.compared) if of_skill else None,
        [_sentence(before, after, each.load()) for each in others] if of_skill else (),
    )


def _sentence(before: Guidance, after: Guidance, chosen: RunsBySide) -> str:
    return lift_sentence(chosen, findings(before, after, chosen).compared)


def _scenario(key: str, change: MeasureChange, own: Findings) -> ScenarioChange:
    return ScenarioChange(key, ShownChange(change), own.before.get(key), own.after.get(key))
