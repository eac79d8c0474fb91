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
    """Return two versions compared in one setting, by its label; else the first. Up to nine queries."""
    settings = settings_of(before, after, launch)
    found = next((each for each in settings if each.setting.label == setting), next(iter(settings), None))
    if found is None:
        return GuidanceAgainst(before, after, differences(before, after), settings, None)
    chosen = found.load()
    own = findings(before, after, chosen)
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
    )


def _scenario(key: str, change: MeasureChange, own: Findings) -> ScenarioChange:
    return ScenarioChange(key, ShownChange(change), own.before.get(key), own.after.get(key))
