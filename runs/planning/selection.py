"""Which scenarios of a suite version take part in a request, and on which targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from django.db.models import QuerySet

from evalhub.teams.models import Project
from runs.errors import NothingToRun, UnknownTarget
from runs.models import Target
from runs.models.run_options import RunOptions, Selection
from scenarios.models import Guidance, Suite, SuiteEntry, SuiteVersion


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


def scenarios_of(version: SuiteVersion) -> tuple[ChosenScenario, ...]:
    """Return all scenarios of a suite version, in order. One query."""
    return tuple(_scenario(*row) for row in _entries(version.pk))


def _entries(version: int) -> QuerySet[SuiteEntry, Any]:
    found = SuiteEntry.objects.filter(suite_version=version).order_by("position")
    columns = ("scenario_version_id", "scenario_version__scenario_id", "scenario_version__content")
    return found.values_list(*columns)


def select_scenarios(
    found: Sequence[ChosenScenario], selection: Selection, suite: str
) -> tuple[ChosenScenario, ...]:
    """Return those of a suite's scenarios that take part. Raises `NothingToRun` where none does."""
    unknown = set(selection.only) - {each.key for each in found}
    if unknown:
        keys = ", ".join(sorted(each.key for each in found))
        raise NothingToRun(f"{suite} has no scenario '{min(unknown)}'. It has: {keys}.")
    chosen = tuple(each for each in found if selection.takes(key=each.key, tags=each.tags, tier=each.tier))
    if not chosen:
        raise NothingToRun(f"No scenario of {suite} is left by the chosen tags, tier and keys.")
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


def last_guidance(suite: Suite) -> Guidance | None:
    """Return the guidance of the suite's last upload, which a run takes that asks for none."""
    upload = suite.uploads.select_related("guidance").first()
    return upload.guidance if upload else None


class ProjectReader:
    """What planning reads of a project, each thing once; a page gives what it has read already."""

    def __init__(
        self,
        project: Project,
        *,
        targets: Sequence[Target] | None = None,
        guidance: Mapping[int, Guidance | None] | None = None,
    ) -> None:
        """Take all accepted targets, and the guidance of the last upload by the suite's key."""
        self._project = project
        self._accepted = targets
        self._found = {target.name: target for target in targets or ()}
        self._guidance = dict(guidance or {})
        self._scenarios: dict[int, tuple[ChosenScenario, ...]] = {}

    def scenarios(self, version: SuiteVersion) -> tuple[ChosenScenario, ...]:
        """Return all scenarios of a suite version."""
        if version.pk not in self._scenarios:
            self._scenarios[version.pk] = scenarios_of(version)
        return self._scenarios[version.pk]

    def guidance(self, suite: Suite) -> Guidance | None:
        """Return what a run of the suite takes that asks for none."""
        if suite.pk not in self._guidance:
            self._guidance[suite.pk] = last_guidance(suite)
        return self._guidance[suite.pk]

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
            self._found[name] = find_target(self._project, name) if name else self._only()
        return self._found[name]

    def _only(self) -> Target:
        accepted = self._accepted
        if accepted is None:
            accepted = list(Target.objects.filter(project=self._project, accepted=True))
        return only_of(sorted(accepted, key=lambda target: target.name))


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


def check_judge(project: Project, options: RunOptions) -> None:
    """Raise `UnknownTarget` where the request names a target as its judge that cannot be used. One query where it names any.

    A name with a slash is a model's.
    """
    if not (options.judge and options.judge_model) or "/" in options.judge_model:
        return
    found = Target.objects.filter(project=project, name=options.judge_model, accepted=False).first()
    if found is not None:
        raise UnknownTarget(_why_not(found))


def _why_not(target: Target) -> str:
    if target.provider == "imported":
        return f"The target '{target.name}' is known from imported results only. Name one that can run."
    return f"The target '{target.name}' is a proposal. An admin has to accept it on the targets page first."


def only_of(targets: Sequence[Target]) -> Target:
    """Return a project's only target, for requests that name none. Raises `UnknownTarget`."""
    if len(targets) == 1:
        return targets[0]
    if not targets:
        raise UnknownTarget(
            "The project has no target yet. Give a targets file, or make one on the targets page."
        )
    names = ", ".join(target.name for target in targets)
    raise UnknownTarget(f"Several targets could run this: {names}. Choose one.")
