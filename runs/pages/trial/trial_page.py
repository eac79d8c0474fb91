"""Read a trial for its page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from evalhub.teams.models import Project
from evaluators.model import Transcript
from runs.models import Artifact, CommandRecord, JudgingRecord, TranscriptRecord, Trial
from runs.pages.trial.steps import Step
from runs.pages.trial.timeline import Timeline, timeline
from runs.pages.trial.typical_values import Median, Usual, usual
from runs.warehouse.layer_totals import CRITERION, DECIDING, is_single
from runs.warehouse.measures import INTERACTION
from runs.warehouse.outcome_history import Sibling, Strip, strip_around
from runs.warehouse.rates import Rate


@dataclass(frozen=True)
class JudgedCriterion:
    """One line of the rubric as a judge scored it."""

    name: str
    score: float | None
    share: float | None
    """Of its weight in that of all, 0 to 1; None where they weigh nothing."""
    description: str


class MeasuredHere(NamedTuple):
    """A measure of layer 1 in a trial, beside what is usual for its scenario."""

    label: str
    unit: str
    value: float | None
    usual: Median


@dataclass(frozen=True)
class TrialPage:
    """A trial and what belongs to it."""

    trial: Trial
    commands: list[CommandRecord]
    judgings: list[JudgingRecord]
    artifacts: list[Artifact]
    siblings: list[Sibling]
    """The scenario's trials in this run, by index."""
    timeline: Timeline
    transcript: Transcript | None
    strip: Strip
    usual: Usual
    baseline: Sibling | None = None
    """The baseline's trial that this one is held against."""

    def _layer(self, *names: str) -> list[dict[str, Any]]:
        return [score for score in self.trial.scores if score["layer"] in names]

    @cached_property
    def gates(self) -> list[dict[str, Any]]:
        """What decides, one by one; the verdict on all assertions only where they are not told."""
        found = self._layer(*DECIDING)
        return [score for score in found if is_single(score["layer"], score["name"])] or found

    @cached_property
    def gate_rate(self) -> Rate:
        verdicts = [score["passed"] for score in self.gates if score.get("passed") is not None]
        return Rate(sum(map(bool, verdicts)), len(verdicts))

    @property
    def scripts(self) -> list[dict[str, Any]]:
        """Scripts that informed after the gates."""
        return self._layer("scripts")

    @property
    def notes(self) -> list[Any]:
        """What setup and post scripts left to say."""
        return list(self.trial.detail.get("scripts") or ())

    @property
    def diagnosis(self) -> list[dict[str, Any]]:
        return list(self.trial.detail.get("diagnosis") or ())

    @cached_property
    def interaction(self) -> dict[str, Any]:
        return dict(self.trial.detail.get("interaction") or {})

    @property
    def first_tries(self) -> int | None:
        """How many of the tool's commands worked at the first try, None where that is not told."""
        # Subcommands do not add up to it: calls for help and commands without one count, too.
        rate, total = (self.interaction.get(name) for name in ("first_try_success_rate", "total_commands"))
        return None if rate is None or total is None else round(rate * total)

    @cached_property
    def answer_begins(self) -> Step | None:
        """The message with which the answer begins, where the last ones said are the answer; None where they are not."""
        answer, said = "".join(self.trial.answer.split()), ""
        for step in reversed(self.timeline.every):
            said = "".join(step.said.split()) + said
            if not answer or step.number or not answer.endswith(said):
                return None
            if said == answer:
                return step
        return None

    @property
    def answer_is_said(self) -> bool:
        """Whether the last things said are the answer."""
        return self.answer_begins is not None

    @property
    def answer_is_shown(self) -> bool:
        """Whether the part of the timeline that is shown ends with the answer."""
        return self.answer_is_said and self.timeline.next is None

    @property
    def said(self) -> int:
        """How many messages there are, with the answer where it is none of them."""
        answer = bool(self.trial.answer) and not self.answer_is_said
        return self.timeline.steps - self.timeline.calls + answer

    @cached_property
    def metrics(self) -> list[MeasuredHere]:
        """Layer 1's measures in the order of the page, without those that were not measured."""
        found = {score["name"]: score.get("value") for score in self._layer("interaction")}
        counts = ("help_seeking", "total_commands")
        return [
            MeasuredHere(label, "commands" if name in counts else "rate", found[name], self.usual.of(name))
            for name, label in INTERACTION.items()
            if name in found and name != "completed"
        ]

    @cached_property
    def has_usual(self) -> bool:
        """Whether any of them was measured in trials before."""
        return any(each.usual.n for each in self.metrics)

    @property
    def judge(self) -> dict[str, Any] | None:
        """The judge's deciding score."""
        return next((score for score in self._layer("judge") if score["name"] == "judge"), None)

    @property
    def threshold(self) -> float | None:
        """What the scenario asks of the judge."""
        asked = self.trial.scenario_version.content.get("criteria", {}).get("judge") or {}
        value: float | None = asked.get("pass_threshold")
        return value

    @property
    def criteria(self) -> list[JudgedCriterion]:
        told = [score for score in self._layer("judge") if score["name"].startswith(CRITERION)]
        whole = sum(score.get("weight", 1.0) for score in told)
        return [
            JudgedCriterion(
                score["name"].removeprefix(CRITERION).replace("_", " ").capitalize(),
                score.get("value"),
                score.get("weight", 1.0) / whole if whole > 0 else None,
                score.get("message", ""),
            )
            for score in told
        ]

    @property
    def here(self) -> int | None:
        """The trial's place in the strip, None where it is not among the last."""
        return self.strip.trials.index(self.trial.pk) if self.trial.pk in self.strip.trials else None

    @property
    def prompt(self) -> str:
        return str(self.trial.scenario_version.content.get("prompt", ""))

    @property
    def previous(self) -> Sibling | None:
        """The scenario's trial before this one."""
        return next((each for each in self.siblings[::-1] if each.index < self.trial.index), None)

    @property
    def following(self) -> Sibling | None:
        """The scenario's trial after this one."""
        return next((each for each in self.siblings if each.index > self.trial.index), None)


RELATED = ("run__suite", "run__target", "run__guidance", "scenario", "scenario_version", "transcript")


def find_trial(project: Project, pk: int) -> Trial | None:
    """Return a project's trial, or None. One query."""
    trial = Trial.objects.select_related(*RELATED).filter(pk=pk, run__project=project).first()
    if trial is None:
        return None
    # Both are the project that was asked for, so that it is not read twice more.
    trial.run.project = trial.run.suite.project = project
    return trial


def trial_page(trial: Trial, start: int = 0) -> TrialPage:
    """Return what belongs to a trial, its timeline from a step on. Six queries where its transcript is loaded."""
    record: TranscriptRecord | None = getattr(trial, "transcript", None)
    transcript = record.unpack() if record else None
    commands = list(CommandRecord.objects.filter(trial=trial))
    strip, siblings, baseline = strip_around(trial)
    return TrialPage(
        trial=trial,
        commands=commands,
        judgings=list(JudgingRecord.objects.filter(trial=trial)),
        artifacts=list(Artifact.objects.filter(trial=trial)),
        siblings=siblings,
        timeline=timeline(transcript, commands, start),
        transcript=transcript,
        strip=strip,
        usual=usual(trial),
        baseline=baseline,
    )
