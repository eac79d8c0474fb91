"""Which scenarios of a suite version take part in a request, and on which targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from evalhub.teams.models import Project
from runs.errors import NothingToRun, UnknownTarget
from runs.models import Target
from runs.options import Selection
from scenarios.models import SuiteVersion


@dataclass(frozen=True)
class ChosenScenario:
    """A scenario version with what planning needs to know of it."""

    version_id: int
    scenario_id: int
    key: str
    tags: tuple[str, ...]
    tier: int
    target: str
    """Name of the target it is meant for, empty for none."""
    matrix: tuple[tuple[str, tuple[str, ...]], ...] | None
    """Targets and the models to run on each; None where it names none."""


def chosen_scenarios(version: SuiteVersion, selection: Selection) -> tuple[ChosenScenario, ...]:
    """Return the scenarios that take part, in order. Raises `NothingToRun` where none does. One query."""
    rows = version.entries.order_by("position").values_list(
        "scenario_version_id", "scenario_version__scenario_id", "scenario_version__content"
    )
    found = [_scenario(*row) for row in rows]
    unknown = set(selection.only) - {each.key for each in found}
    if unknown:
        keys = ", ".join(sorted(each.key for each in found))
        raise NothingToRun(f"{version.suite.name} has no scenario '{min(unknown)}'. It has: {keys}.")
    chosen = tuple(each for each in found if selection.takes(key=each.key, tags=each.tags, tier=each.tier))
    if not chosen:
        raise NothingToRun(f"No scenario of {version.suite.name} is left by the chosen tags, tier and keys.")
    return chosen


def _scenario(version_id: int, scenario_id: int, content: dict[str, Any]) -> ChosenScenario:
    matrix = content.get("matrix")
    return ChosenScenario(
        version_id,
        scenario_id,
        content["key"],
        tuple(content.get("tags", ())),
        content.get("tier", 0),
        content.get("target", ""),
        None if matrix is None else tuple((row["target"], tuple(row.get("models", ()))) for row in matrix),
    )


class TargetsOf:
    """The accepted targets of a project, each looked up once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._found: dict[str, Target] = {}

    def arms(
        self, scenario: ChosenScenario, targets: Sequence[str], models: Sequence[str]
    ) -> list[tuple[Target, str]]:
        """Return target and model of each run that a scenario takes part in; options win over its matrix."""
        if targets or scenario.matrix is None:
            names = targets or [scenario.target]
            return [(self._named(name), model) for name in names for model in models or ("",)]
        return [
            (self._named(name), model)
            for name, own_models in scenario.matrix
            for model in (models or own_models or ("",))
        ]

    def _named(self, name: str) -> Target:
        if name not in self._found:
            self._found[name] = find_target(self._project, name) if name else only_target(self._project)
        return self._found[name]


def find_target(project: Project, name: str) -> Target:
    """Return the project's accepted target. Raises `UnknownTarget` with what there is instead."""
    target = Target.objects.filter(project=project, name=name).first()
    if target is not None and target.accepted:
        return target
    if target is not None:
        raise UnknownTarget(_why_not(target))
    names = sorted(Target.objects.filter(project=project, accepted=True).values_list("name", flat=True))
    if not names:
        raise UnknownTarget(
            f"There is no target called '{name}', and the project has none. Give a targets file."
        )
    close = get_close_matches(name, names, n=1)
    hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(names)}."
    raise UnknownTarget(f"There is no target called '{name}'. {hint}")


def _why_not(target: Target) -> str:
    if target.provider == "imported":
        return f"The target '{target.name}' is known from imported results only. Name one that can run."
    return f"The target '{target.name}' is a proposal. An admin has to accept it on the targets page first."


def only_target(project: Project) -> Target:
    """Return the project's only target, for requests that name none. Raises `UnknownTarget`."""
    targets = list(Target.objects.filter(project=project, accepted=True).order_by("name"))
    if len(targets) == 1:
        return targets[0]
    if not targets:
        raise UnknownTarget(
            "The project has no target yet. Give a targets file, or make one on the targets page."
        )
    names = ", ".join(target.name for target in targets)
    raise UnknownTarget(f"Several targets could run this: {names}. Choose one.")
