"""Find which statements and cases show what a skill adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

from evalhub.web.states import look_of_state
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange, Sample
from evaluators.statistics.regression import compare_scenarios
from runs.compare.guidance.guidance_comparison import RunsBySide, compare_pooled, pooled_samples, settings_of
from runs.compare.guidance.lift_answer import (
    LiftAnswer,
    benchmark_json,
    first_words,
    lift_unknown,
    previous_json,
    read_lift_answer,
)
from runs.compare.lost_scenarios import pass_changes
from runs.compare.measure_changes import RunComparison, rule_of
from runs.compare.shown_changes import ShownChange
from runs.models import Run, Trial
from runs.models.run import Arm, Preset
from runs.results.measures import CRITERION, label_named, unit_of
from runs.results.repeated_statements import Texts, statement_texts
from scenarios.guidance import skill_files, without_skills
from scenarios.models import Guidance
from scenarios.storing import guidance_files

PRICES = ("trial/cost_usd", "trial/tokens_in", "trial/seconds")
"""What may make a case dearer."""
MOST_LIFTS = 50
"""The newest arms without a skill that are looked through."""


class StatementKind(StrEnum):
    """What a statement's results in both arms say of it."""

    ONLY_WITH = "only_with"
    """It never holds without the skill, and always with it."""
    ONLY_WITHOUT = "only_without"
    ALWAYS = "always"
    """It holds in every trial of both arms."""
    NEVER = "never"
    FLIPS = "flips"
    """In one arm it holds in some trials only."""


_MEANINGS = {
    StatementKind.ONLY_WITH: "the skill's value",
    StatementKind.ONLY_WITHOUT: "the skill does harm here",
    StatementKind.ALWAYS: "proves nothing about the skill",
    StatementKind.NEVER: "broken or too hard",
    StatementKind.FLIPS: "varies from trial to trial",
}
"""What a statement's author may conclude, in the order of pages."""


@dataclass(frozen=True)
class StatementLift:
    """A statement or a gate of a case in both arms."""

    scenario: str
    name: str
    """The measure, such as `judge/criterion.the_answer_names_the_note`."""
    text: str
    before: Sample
    """How often it held without the skill."""
    after: Sample
    """The same with the skill."""
    kind: StatementKind


@dataclass(frozen=True)
class Lift(LiftAnswer):
    """What a skill adds on one target and model, with the statements and cases that show it."""

    statements: tuple[StatementLift, ...] = ()
    dearer: tuple[tuple[str, ShownChange], ...] = ()
    """The cases that cost more, need more tokens or take longer with the skill, each with the measure's change."""

    @property
    def kinds(self) -> list[tuple[str, str, list[StatementLift]]]:
        """Return each kind's word and meaning with its statements, without empty kinds."""
        return [
            (look_of_state(kind)[1].capitalize(), meaning, own)
            for kind, meaning in _MEANINGS.items()
            if (own := [each for each in self.statements if each.kind is kind])
        ]


def is_lift(before: Guidance, after: Guidance) -> bool:
    """Return whether one version is the other without its skills."""
    new = guidance_files(after)
    rest = without_skills(new)
    return rest != new and guidance_files(before) == rest


def without_bare_arms(versions: Sequence[Guidance], adopted: Guidance | None) -> list[Guidance]:
    """Return a suite's versions without those that a lift made by removing the skill; all where it uses no skill."""
    if adopted is None or not skill_files(guidance_files(adopted)):
        return list(versions)
    return [each for each in versions if skill_files(guidance_files(each))]


def read_lift(chosen: RunsBySide, compared: RunComparison | None = None) -> Lift:
    """Return what the skill adds, of runs without it against runs with it.

    Up to twelve queries, six if compared; one for the previous version, and six more where it ran.
    """
    answer = read_lift_answer(chosen, compared or compare_pooled(chosen))
    before, after = pooled_samples(chosen)
    texts = statement_texts(chosen.after)
    return Lift(
        answer.chosen,
        answer.compared,
        answer.previous,
        answer.was_opened,
        tuple(_statements(before, after, texts)),
        tuple(_dearer_cases(chosen, before, after)),
    )


@dataclass(frozen=True)
class MeasuredLift:
    """A lift on one target and model by its two runs, as cards say it."""

    without: Run
    with_skill: Run
    change: MeasureChange | None
    """The pass rate's, as the run with the skill stored it; None before both ended, and where no case has results."""

    @property
    def where(self) -> str:
        """The target and its model."""
        return " · ".join(filter(None, (self.with_skill.target.name, self.with_skill.model)))

    @property
    def sentence(self) -> str:
        """What the skill adds, or that its trials still run."""
        if self.change:
            return f"{first_words(self.change, self.where)}."
        return f"On {self.where}, trials still run." if self.with_skill.is_open else lift_unknown(self.where)


def latest_lifts(runs: QuerySet[Run]) -> list[MeasuredLift]:
    """Return the newest lift of each suite among runs, in each of its settings, the newest first. Three queries."""
    skills = runs.filter(launch__preset=Preset.LIFT, arm=Arm.NEW).exclude(reference=None)
    rows = list(skills.select_related("suite", "target", "reference").order_by("-pk")[:MOST_LIFTS])
    launches: dict[int, int] = {}
    for run in rows:
        launches.setdefault(run.suite_id, run.launch_id)
    newest = [run for run in rows if launches[run.suite_id] == run.launch_id]
    changes = pass_changes([run.pk for run in newest])
    return [MeasuredLift(run.reference, run, changes.get(run.pk)) for run in newest if run.reference]


def lifts_of_launch(launch: int) -> list[Lift]:
    """Return the lift of each suite, target and model of a launch."""
    runs = Run.objects.filter(launch=launch, options__lift=True).select_related("guidance").order_by("pk")
    by_suite: dict[int, dict[int, Guidance]] = {}
    for run in runs:
        if run.guidance is not None and run.arm != Arm.PREVIOUS:
            by_suite.setdefault(run.suite_id, {})[run.guidance.pk] = run.guidance
    pairs = [tuple(own.values()) for own in by_suite.values() if len(own) == 2]
    return [read_lift(setting.load()) for old, new in pairs for setting in settings_of(old, new, launch)]


def describe_stopped_arms(launch: int) -> list[str]:
    """Return why arms of a launch's lift have no results, in the order of their runs. One query."""
    runs = Run.objects.filter(launch=launch, options__lift=True).select_related("guidance").order_by("pk")
    return [why_no_results(run) for run in runs if not run.is_open and (run.error or run.is_unusable)]


def why_no_results(run: Run) -> str:
    """Return why an arm has no results, in sentences: what its trials have in common comes first."""
    arm = f"{run.guidance} (run {run.pk})" if run.guidance else f"Run {run.pk}"
    if run.error:
        return f"{arm}: the run did not start. {run.error}"
    shared = _shared_error(run) if not run.not_started else ""
    return f"{arm}: {f'all trials hit the same error: {shared} ' if shared else ''}{run.no_verdict}"


def _shared_error(run: Run) -> str:
    """Return the error of all trials of a run; empty if they differ. One query where all are errors."""
    if run.passed or run.failed or not run.errors:
        return ""
    errors = set(Trial.objects.filter(run=run, outcome="error").values_list("error", flat=True)[:100])
    return errors.pop() if len(errors) == 1 else ""


def _statements(
    before: Mapping[str, Mapping[str, Sample]], after: Mapping[str, Mapping[str, Sample]], texts: Texts
) -> Iterator[StatementLift]:
    for name in sorted(before.keys() & after.keys()):
        layer, _, measure = name.partition("/")
        if layer != "gates" and not measure.startswith(CRITERION):
            continue
        for key in sorted(before[name].keys() & after[name].keys()):
            old, new = before[name][key], after[name][key]
            label = label_named(layer, measure)
            text = texts.get((key, measure.removeprefix(CRITERION)), label)
            text = f"Gate: {label.lower()}" if layer == "gates" else text
            yield StatementLift(key, name, text, old, new, _kind_of(old.mean, new.mean))


def _kind_of(before: float, after: float) -> StatementKind:
    """Return what the shares of trials in which a statement held say of it."""
    if 0.0 < before < 1.0 or 0.0 < after < 1.0:
        return StatementKind.FLIPS
    if before == after:
        return StatementKind.ALWAYS if after else StatementKind.NEVER
    return StatementKind.ONLY_WITH if after else StatementKind.ONLY_WITHOUT


def _dearer_cases(
    chosen: RunsBySide, before: Mapping[str, dict[str, Sample]], after: Mapping[str, dict[str, Sample]]
) -> Iterator[tuple[str, ShownChange]]:
    """Yield the cases that became dearer, each measure corrected over its cases."""
    for name in PRICES:
        if name in before and name in after:
            layer, _, measure = name.partition("/")
            rule = rule_of(chosen.after[0].project, layer, measure, *unit_of(layer, measure))
            changes = compare_scenarios(rule, before[name], after[name], with_power=False)
            for key, change in changes.items():
                if change.verdict is ChangeVerdict.REGRESSED:
                    yield key, ShownChange(change)


def lift_json(lift: Lift) -> dict[str, Any]:
    """Return a lift for REST and the command line."""
    pass_rate = lift.compared.pass_rate
    return {
        "setting": lift.chosen.setting._asdict(),
        "verdict": pass_rate.verdict.value if pass_rate else None,
        "sentence": lift.sentence,
        "previous": previous_json(lift.previous) if lift.previous else None,
        "benchmark": benchmark_json(lift),
        "statements": [
            {
                "scenario": statement.scenario,
                "name": statement.name,
                "text": statement.text,
                "kind": statement.kind.value,
                "without": statement.before.mean,
                "with_skill": statement.after.mean,
            }
            for statement in lift.statements
        ],
        "dearer": [
            {"scenario": key, "measure": shown.change.measure, "growth": shown.change.effect}
            for key, shown in lift.dearer
        ],
    }
