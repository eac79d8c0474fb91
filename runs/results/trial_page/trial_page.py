"""Read a trial for its page, with the scores and criteria that a person can overrule."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from django.db.models import Exists, OuterRef, Subquery

from evalhub.teams.models import Project
from evalhub.web.paging import LARGEST_KEY
from evaluators.model import Transcript
from evaluators.transcripts.traces import trace_summary
from runs.compare.comparison import can_change_outcome
from runs.models import (
    Artifact,
    CommandRecord,
    JudgingRecord,
    Overrule,
    Review,
    TranscriptRecord,
    Trial,
    TrialAttempt,
)
from runs.results.counting import FEWEST_KNOWN, describe_exit_codes, describe_unknown_exits, why_not_recorded
from runs.results.failure_reasons import fail_reason
from runs.results.layer_totals import DECIDING, ExitCodeTotals, ReadScore, is_single, is_vacuous
from runs.results.measures import CRITERION, INTERACTION, unit_of
from runs.results.outcome_history import OutcomeHistory, Sibling, strip_around
from runs.results.rates import Rate
from runs.results.repeated_statements import statements_of
from runs.results.rollups import token_parts, trial_warnings
from runs.results.trial_page.steps import TimelineStep
from runs.results.trial_page.timeline import Timeline, build_timeline
from runs.results.trial_page.typical_values import Median, TypicalValues, typical_values
from runs.review.calibrations import JudgeVersion, JudgingFacts, with_facts
from runs.review.overruling import read_checklists, takes_number, takes_verdict
from runs.review.reviewing import reviews_of


class Overrulable(NamedTuple):
    """A score or a criterion, and what may replace it."""

    address: str
    label: str
    takes: str
    """What replaces it: `verdict`, `number` or `both`."""


def _overrulable(position: int, row: dict[str, Any]) -> Overrulable:
    takes = (
        "both" if takes_verdict(row) and takes_number(row) else "verdict" if takes_verdict(row) else "number"
    )
    return Overrulable(str(position), _score_label(row), takes)


def overrulable_scores(
    trial: Trial, overrules: Sequence[Overrule], checklists: Mapping[str, Mapping[str, bool]]
) -> list[Overrulable]:
    """Return what can be overruled, the judge's scores first; nothing where that can't change the outcome.

    `checklists` are the judge's yes-or-no answers by evaluator and criterion.
    """
    if not can_change_outcome(trial):
        return []
    rows = [
        (n, row)
        for n, row in enumerate(trial.scores)
        if (takes_verdict(row) or takes_number(row)) and not (row.get("detail") or {}).get("overruled")
    ]
    rows.sort(key=lambda item: item[1]["layer"] != "judge")
    overruled = {(each.name, each.criterion) for each in overrules if not each.undone}
    return [
        score
        for n, row in rows
        for score in (_overrulable(n, row), *_criteria(n, row, checklists.get(row["name"], {}), overruled))
    ]


def _criteria(
    position: int, row: dict[str, Any], answers: Mapping[str, bool], overruled: set[tuple[str, str]]
) -> Iterator[Overrulable]:
    """Yield the criteria of an evaluator that nobody has overruled."""
    if row["layer"] != "evaluators":
        return
    for name, answer in sorted(answers.items()):
        if (row["name"], name) not in overruled:
            label = f"{row['name']}: {name} ({'yes' if answer else 'no'})"
            yield Overrulable(f"{position}:{name}", label, "verdict")


def _score_label(row: dict[str, Any]) -> str:
    passed, value = row.get("passed"), row.get("value")
    verdict = "error" if row.get("error") else "" if passed is None else "passed" if passed else "failed"
    number = f"{value:.2f}" if takes_number(row) and value is not None else ""
    name = "judge" if row["layer"] == row["name"] == "judge" else f"{row['layer']}: {row['name']}"
    return f"{name} ({', '.join(filter(None, (verdict, number))) or 'no score'})"


@dataclass(frozen=True)
class JudgedCriterion:
    """One criterion of the rubric with its score."""

    id: str
    name: str
    score: float | None
    share: float | None
    """Relative weight, 0 to 1; None if all weights are zero."""
    description: str


class MeasuredHere(NamedTuple):
    """A measure of layer 1 in a trial, with the scenario's typical value."""

    label: str
    unit: str
    value: float | None
    typical: Median


class FailedGate(NamedTuple):
    """A gate that failed."""

    number: int
    """Its place among the gates, from 1."""
    score: dict[str, Any]


@dataclass(frozen=True)
class TrialPage:
    """Content of a trial's page."""

    trial: Trial
    commands: list[CommandRecord]
    judgings: list[JudgingRecord]
    artifacts: list[Artifact]
    siblings: list[Sibling]
    """The scenario's trials in this run, by index."""
    timeline: Timeline
    transcript: Transcript | None
    strip: OutcomeHistory
    typical: TypicalValues
    attempts: list[TrialAttempt] = field(default_factory=list)
    """Earlier attempts, newest first; none if it was never retried."""
    baseline: Sibling | None = None
    """The baseline's trial to compare with."""
    reviews: dict[tuple[int, str, int], list[Review]] = field(default_factory=dict)
    """Reviews by judging, polarity and position."""
    overrules: list[Overrule] = field(default_factory=list)
    """Oldest first, with those that were undone."""
    checklists: dict[str, dict[str, bool]] = field(default_factory=dict)
    """The judge's yes-or-no answers by evaluator and criterion."""
    uncalibrated: list[JudgeVersion] = field(default_factory=list)
    """The judges of its counting judgings that are not calibrated."""

    def reviewed(self, judging: JudgingRecord, polarity: str, position: int) -> list[Review]:
        """Return the reviews of a statement."""
        return self.reviews.get((judging.pk, polarity, position), [])

    @property
    def is_vacuous(self) -> bool:
        """Whether it passed without anything that checked it."""
        return is_vacuous(self.trial.outcome, msgspec.convert(self.trial.scores, list[ReadScore]))

    @cached_property
    def overrulable(self) -> list[Overrulable]:
        """Return the scores and criteria that a person can overrule, the judge's first."""
        return overrulable_scores(self.trial, self.overrules, self.checklists)

    def _layer(self, *names: str) -> list[dict[str, Any]]:
        return [score for score in self.trial.scores if score["layer"] in names]

    @cached_property
    def gates(self) -> list[dict[str, Any]]:
        """Return the deciding scores; the overall verdict on assertions only if the single ones are unknown."""
        deciding = self._layer(*DECIDING)
        return [score for score in deciding if is_single(score["layer"], score["name"])] or deciding

    @cached_property
    def gate_rate(self) -> Rate:
        verdicts = [score["passed"] for score in self.gates if score.get("passed") is not None]
        return Rate(sum(map(bool, verdicts)), len(verdicts))

    @cached_property
    def failed_gate(self) -> FailedGate | None:
        """Return the first gate that failed; None if none did."""
        failed = ((n, each) for n, each in enumerate(self.gates, 1) if each.get("passed") is False)
        return next((FailedGate(*found) for found in failed), None)

    @property
    def scripts(self) -> list[dict[str, Any]]:
        """Return the scores of scripts that inform without deciding."""
        return self._layer("scripts")

    @property
    def notes(self) -> list[Any]:
        """Return the notes of setup and post scripts."""
        return list(self.trial.detail.get("scripts") or ())

    @property
    def cost_warnings(self) -> list[str]:
        """Return notes on the trial's cost."""
        return trial_warnings(self.trial.detail)

    @property
    def token_parts(self) -> str:
        """Return how many tokens were cached or reasoning; empty if none is known."""
        return token_parts(self.trial.detail.get("usage") or {})

    @property
    def diagnosis(self) -> list[dict[str, Any]]:
        return list(self.trial.detail.get("diagnosis") or ())

    @property
    def fail_reason(self) -> str:
        """Return why the trial failed, in one line; empty unless it did."""
        return fail_reason(self.trial.scores) if self.trial.outcome == "fail" else ""

    @cached_property
    def trace_summary(self) -> dict[str, Any] | None:
        """Return AgentV's summary of the trace; None without a trace."""
        return trace_summary(self.transcript) if self.transcript else None

    @cached_property
    def interaction(self) -> dict[str, Any]:
        return dict(self.trial.detail.get("interaction") or {})

    @property
    def first_tries(self) -> int | None:
        """Return how many of the tool's commands succeeded at the first try; None if unknown."""
        # The subcommands' sum is lower: calls for help and commands without a subcommand count too.
        rate = self.interaction.get("first_try_success_rate")
        return None if rate is None else round(rate * self.exit_codes.known)

    @cached_property
    def exit_codes(self) -> ExitCodeTotals:
        """Return how the exit codes of its commands are known."""
        metrics = self.interaction
        total = metrics.get("total_commands") or 0
        return ExitCodeTotals(
            commands=total,
            known=total - metrics.get("unknown_exit", 0),
            estimated=metrics.get("estimated", 0),
            not_run=metrics.get("not_run", 0),
            indirect_by=metrics.get("indirect_by", {}),
            mentioned=metrics.get("mentioned", 0),
            unread=metrics.get("unread", 0),
            printed_errors=len(metrics.get("printed_errors", ())),
        )

    @property
    def not_recorded(self) -> str:
        """Return why the tool was not recorded; empty if it was, or if nothing is known."""
        return why_not_recorded(self.trial.detail.get("notes") or ())

    @property
    def rates_are_missing(self) -> bool:
        """Return whether there is no rate although commands were found."""
        return bool(self.exit_codes.commands) and (not self.has_rates or self.first_tries is None)

    @property
    def exit_notes(self) -> list[str]:
        """Return notes on its exit codes, besides the number of unknown ones."""
        return describe_exit_codes(self.exit_codes)

    @property
    def unknown(self) -> str:
        """Return how many exit codes are unknown; empty if all are known."""
        return describe_unknown_exits(self.exit_codes)

    @property
    def printed_address(self) -> str:
        """Return the link to the first command that printed an error and whose exit code is unknown; empty without one."""
        return self.timeline.address_of(self.interaction.get("printed_errors", ()))

    @property
    def has_rates(self) -> bool:
        """Return whether enough exit codes are known for a rate."""
        return self.exit_codes.known >= FEWEST_KNOWN

    @cached_property
    def answer_start(self) -> TimelineStep | None:
        """Return the message with which the answer begins; None if the last messages are not the answer."""
        answer, end = "".join(self.trial.answer.split()), ""
        for step in reversed(self.timeline.every):
            end = "".join(step.text.split()) + end
            if not answer or step.number or not answer.endswith(end):
                return None
            if end == answer:
                return step
        return None

    @property
    def ends_with_answer(self) -> bool:
        """Return whether the last messages are the answer."""
        return self.answer_start is not None

    @property
    def answer_is_shown(self) -> bool:
        """Return whether the shown part of the timeline ends with the answer."""
        return self.ends_with_answer and self.timeline.next is None

    @property
    def messages(self) -> int:
        """Return the number of messages; an answer that is not among them counts too."""
        answer = bool(self.trial.answer) and not self.ends_with_answer
        return self.timeline.steps - self.timeline.calls + answer

    @cached_property
    def metrics(self) -> list[MeasuredHere]:
        """Return the measured values of layer 1 in display order."""
        values = {score["name"]: score.get("value") for score in self._layer("interaction")}
        if not self.has_rates:
            values |= {name: None for name in ("first_try_success_rate", "error_rate") if name in values}
        return [
            MeasuredHere(label, unit_of("interaction", name)[0], values[name], self.typical.of(name))
            for name, label in INTERACTION.items()
            if name in values and name != "completed"
        ]

    @cached_property
    def has_typical(self) -> bool:
        """Return whether earlier trials measured any of them."""
        return any(each.typical.n for each in self.metrics)

    @property
    def judge(self) -> dict[str, Any] | None:
        """Return the judge's deciding score."""
        return next((score for score in self._layer("judge") if score["name"] == "judge"), None)

    @property
    def threshold(self) -> float | None:
        """Return the judge's pass threshold; None without one."""
        judge = self.trial.scenario_version.content.get("criteria", {}).get("judge") or {}
        value: float | None = judge.get("pass_threshold")
        return value

    @cached_property
    def criteria(self) -> list[JudgedCriterion]:
        scores = [score for score in self._layer("judge") if score["name"].startswith(CRITERION)]
        whole = sum(score.get("weight", 1.0) for score in scores)
        texts = statements_of(self.trial.scenario_version)
        return [
            JudgedCriterion(
                (id := score["name"].removeprefix(CRITERION)),
                texts.get(id) or id.replace("_", " ").capitalize(),
                score.get("value"),
                score.get("weight", 1.0) / whole if whole > 0 else None,
                score.get("message", ""),
            )
            for score in scores
        ]

    @property
    def strip_index(self) -> int | None:
        """Return the trial's index in the strip; None if it is too old."""
        return self.strip.trials.index(self.trial.pk) if self.trial.pk in self.strip.trials else None

    @property
    def prompt(self) -> str:
        return str(self.trial.scenario_version.content.get("prompt", ""))

    @property
    def previous(self) -> Sibling | None:
        """Return the scenario's previous trial in this run."""
        return next((each for each in self.siblings[::-1] if each.index < self.trial.index), None)

    @property
    def following(self) -> Sibling | None:
        """Return the scenario's next trial in this run."""
        return next((each for each in self.siblings if each.index > self.trial.index), None)


RELATED = (
    "run__suite",
    "run__target",
    "run__guidance",
    "scenario",
    "scenario_version__rubric",
    "transcript",
)


def find_shown_trial(project: Project, pk: int) -> Trial | None:
    """Return a project's trial, or None. One query."""
    return trials_by_key(project, [pk]).get(pk)


def trials_by_key(project: Project, pks: Collection[int], **also: Subquery) -> dict[int, Trial]:
    """Return a project's trials by key, annotated with `also`. One query."""
    # SQLite fails on a list with a number beyond 64 bits.
    keys = [pk for pk in pks if pk <= LARGEST_KEY]
    overruled = Exists(Overrule.objects.filter(trial=OuterRef("pk")))
    trials = Trial.objects.select_related(*RELATED).filter(pk__in=keys, run__project=project)
    retried = Exists(TrialAttempt.objects.filter(trial=OuterRef("pk")))
    trials = trials.annotate(is_overruled=overruled, was_retried=retried, **also)
    for trial in trials:
        # Both are the same project: avoid loading it twice more.
        trial.run.project = trial.run.suite.project = project
    return {trial.pk: trial for trial in trials}


def trial_page(trial: Trial, start: int = 0) -> TrialPage:
    """Return a trial's page with its timeline from a step on. Six queries, and one each for reviews and overruled scores; expects its transcript to be loaded."""
    record: TranscriptRecord | None = getattr(trial, "transcript", None)
    transcript = record.unpack() if record else None
    commands = list(CommandRecord.objects.filter(trial=trial))
    strip, siblings, baseline = strip_around(trial)
    judgings = list(with_facts(JudgingRecord.objects.filter(trial=trial), trial.run.project))
    facts = [JudgingFacts(judging) for judging in judgings]
    unsure = [
        JudgeVersion(judging.model, judging.rubric)
        for judging, fact in zip(judgings, facts, strict=True)
        if fact.unsure
    ]
    reviewed = [judging.pk for judging, fact in zip(judgings, facts, strict=True) if fact.is_reviewed]
    return TrialPage(
        trial=trial,
        commands=commands,
        judgings=judgings,
        artifacts=list(Artifact.objects.filter(trial=trial)),
        siblings=siblings,
        timeline=build_timeline(transcript, commands, start),
        transcript=transcript,
        strip=strip,
        typical=typical_values(trial),
        attempts=list(trial.attempts.order_by("-number")) if vars(trial)["was_retried"] else [],
        baseline=baseline,
        reviews=reviews_of(reviewed) if reviewed else {},
        overrules=list(trial.overrules.select_related("by", "undone_by"))
        if getattr(trial, "is_overruled", True)
        else [],
        checklists=read_checklists(trial, judgings),
        uncalibrated=list(dict.fromkeys(unsure)),
    )
