"""Further trials of two compared runs: a round of both, which only their comparison counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluators.statistics.error_shares import Levels
from evaluators.statistics.looks import StoredLook
from runs.compare.looks import levels_asked, levels_of_look, stored_looks
from runs.models import Launch, Run
from runs.models.run import Preset


@dataclass(frozen=True)
class Extension:
    """Further trials of a run and of the one that it is compared with."""

    launch: Launch
    base: int
    new: Run

    @property
    def looks(self) -> list[StoredLook]:
        """What each look at both found, the first one first."""
        return stored_looks(self.launch.stop["looks"])

    @property
    def is_open(self) -> bool:
        """Whether trials may follow."""
        return not self.launch.stop["ended"]

    @property
    def note(self) -> str:
        """Why its trials don't count, or how many do."""
        if self.is_open:
            return "trials are running"
        if not self.looks:
            return next(
                (text for text in self.new.warnings[::-1] if text.endswith(" did not run.")), "no trial ran"
            )
        return self.looks[-1].reason or f"{sum(self.looks[-1].trials)} trials in all"


def extensions_of(runs: Iterable[Run]) -> list[Extension]:
    """Return the further trials of pairs of these runs, oldest first. One query."""
    keys = [run.pk for run in runs]
    launches = (
        Launch.objects.filter(preset=Preset.MORE, about__in=keys).select_related("about").order_by("pk")
    )
    return [
        Extension(launch, launch.request["base"], launch.about)
        for launch in launches
        if launch.about and launch.request["base"] in keys
    ]


def levels_of(base: Run, new: Run, extensions: Sequence[Extension] = ()) -> Levels | None:
    """Return the levels of a comparison whose later rounds count; None if it asked for none. No query."""
    pair = {base.pk, new.pk}
    counted = [each for each in extensions if {each.base, each.new.pk} == pair and each.looks]
    return levels_of_look(counted[-1].looks[-1]) if counted else levels_asked(base, new)
