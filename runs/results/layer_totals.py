"""Total the three layers of a run's trials."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models.fields.json import KT
from msgspec import Struct

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.tool_use.interaction import Interaction
from runs.models import Trial
from runs.results.failure_reasons import is_verdict
from runs.results.measures import CRITERION
from scenarios.models import ScenarioVersion

RECORDED = "recorded"
TEXT = "transcript"
"""Source of commands found in a text without events."""
DECIDING = ("gates", "assertions", "evaluators")
"""Layers of single verdicts."""
CHECKING = frozenset((*DECIDING, "judge"))


class ReadScoreDetail(Struct, frozen=True, gc=False):
    """What is read of a score's detail."""

    name: Any = None
    """The name that a scenario gives to its gate, if any."""
    vacuous: Any = None
    """Whether a case's assertions asserted nothing."""


class ReadScore(Struct, gc=False):
    """The fields read from a score; the rest of its JSON is skipped."""

    layer: str
    name: str
    value: float | None = None
    passed: bool | None = None
    message: str = ""
    weight: float = 1.0
    detail: ReadScoreDetail = ReadScoreDetail()


def is_vacuous(outcome: str, scores: Iterable[ReadScore]) -> bool:
    """Return whether a trial that evalhub ran passed without anything that checked it.

    Gates, assertions, evaluators and judges check; scripts inform. Imported results state their outcomes themselves.
    """
    ran = checked = False
    for score in scores:
        ran |= (score.layer, score.name) == ("interaction", "completed")
        has_result = score.passed is not None or score.value is not None
        checked |= score.layer in CHECKING and has_result and not score.detail.vacuous
    return outcome == "pass" and ran and not checked


class GateKind(Struct, frozen=True):
    """Totals of one kind of gate over a run's trials."""

    layer: str
    name: str
    passed: int
    total: int
    scenarios: int = 0
    """Number of scenarios with it; 0 in runs without one."""


class LostGate(Struct, frozen=True):
    """A gate that failed for the same reason in several trials."""

    name: str
    reason: str
    trials: tuple[int, ...]


class JudgeTotals(Struct, frozen=True):
    """The judge's thresholds, and how many trials reached them."""

    reached: int = 0
    decided: int = 0
    thresholds: tuple[float, ...] = ()
    """Pass thresholds, ascending; scenarios may differ."""
    shares: dict[str, float] = {}
    """Relative weights of the criteria, 0 to 1, by name, without those that differ between trials."""

    @property
    def threshold(self) -> float | None:
        """Return the common threshold; None if they differ or none is known."""
        return self.thresholds[0] if len(self.thresholds) == 1 else None


class ExitCodeTotals(Struct, frozen=True):
    """How the exit codes of commands are known, and what isn't among them."""

    commands: int = 0
    known: int = 0
    estimated: int = 0
    """Known exit codes that are estimated from text."""
    not_run: int = 0
    """Calls that never ran."""
    indirect_by: dict[str, int] = {}
    """Recorded calls by other programs, by the program."""
    mentioned: int = 0
    """Shell commands that name the tool and have no command of it."""
    unread: int = 0
    """Shell calls that were not read in time."""
    printed_errors: int = 0
    """Commands with an unknown exit code that printed an error."""
    printed_in: int | None = None
    """The trial with the most of them."""
    others: int = 0
    """Trials whose commands don't count, because most of their scenario's have another source."""


class LayerTotals(Struct, frozen=True):
    """Totals of the layers over a run's trials, without errors."""

    trials: int = 0
    completed: int = 0
    """Trials whose agent exited successfully."""
    known: int = 0
    """Trials whose exit is known."""
    structured: int = 0
    """Trials with commands from structured events."""
    text: int = 0
    """Trials with commands from text."""
    lost: LostGate | None = None
    """The most frequent failure."""
    judge: JudgeTotals = JudgeTotals()
    recorded: int = 0
    """Trials with recorded commands."""
    exit_codes: ExitCodeTotals = ExitCodeTotals()
    not_recorded: dict[str, int] = {}
    """Trials whose tool was not recorded, by the reason."""


class TotalledTrial(Struct, frozen=True):
    """A finished trial without error."""

    pk: int
    scores: Sequence[ReadScore]
    interaction: Interaction | None
    not_recorded: str = ""
    """Why its tool was not recorded; empty if it was."""
    counts: bool = True
    """Whether its commands count: their source is that of its scenario's trials."""

    @property
    def source(self) -> str:
        """Return the source of its commands, as in `Transcript.source`."""
        return self.interaction.source if self.interaction else "none"


def layer_totals(run: int, trials: Sequence[TotalledTrial]) -> LayerTotals:
    """Return the totals of a run's layers. One query if a judge decided any trial."""
    sources = Counter(trial.source for trial in trials)
    completed = [
        score.value
        for trial in trials
        for score in trial.scores
        if (score.name == "completed" and score.layer == "interaction" and score.value is not None)
    ]
    return LayerTotals(
        trials=len(trials),
        completed=sum(bool(value) for value in completed),
        known=len(completed),
        structured=len(trials) - sources["none"] - sources[TEXT] - sources[RECORDED],
        text=sources[TEXT],
        lost=most_lost(trials),
        judge=_judge(run, trials),
        recorded=sources[RECORDED],
        exit_codes=_total_exit_codes(trials),
        not_recorded=dict(Counter(trial.not_recorded for trial in trials if trial.not_recorded)),
    )


def _total_exit_codes(trials: Sequence[TotalledTrial]) -> ExitCodeTotals:
    metrics = [trial.interaction for trial in trials if trial.interaction and trial.counts]
    printed = {
        trial.pk: len(trial.interaction.printed_errors)
        for trial in trials
        if trial.interaction and trial.counts
    }
    by: Counter[str] = Counter()
    for interaction in metrics:
        by.update(interaction.indirect_by)
    return ExitCodeTotals(
        commands=sum(interaction.total_commands for interaction in metrics),
        known=sum(interaction.total_commands - interaction.unknown_exit for interaction in metrics),
        estimated=sum(interaction.estimated for interaction in metrics),
        not_run=sum(interaction.not_run for interaction in metrics),
        indirect_by=dict(by.most_common()),
        mentioned=sum(interaction.mentioned for interaction in metrics),
        unread=sum(interaction.unread for interaction in metrics),
        printed_errors=sum(printed.values()),
        others=sum(not trial.counts for trial in trials),
        printed_in=max(printed, key=printed.__getitem__) if any(printed.values()) else None,
    )


def most_lost(trials: Iterable[TotalledTrial]) -> LostGate | None:
    failed_by_reason: defaultdict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for trial in trials:
        for score in trial.scores:
            if score.passed is False and is_single(score.layer, score.name):
                failed_by_reason[score.name, score.message[:LONGEST_ERROR]][trial.pk] = None
    if not failed_by_reason:
        return None
    (name, reason), failed = max(failed_by_reason.items(), key=lambda item: len(item[1]))
    return LostGate(name, reason, tuple(failed))


def _judge(run: int, trials: Iterable[TotalledTrial]) -> JudgeTotals:
    verdicts = []
    shares: defaultdict[str, set[float]] = defaultdict(set)
    for trial in trials:
        judged = [score for score in trial.scores if score.layer == "judge"]
        verdicts += [score.passed for score in judged if score.name == "judge" and score.passed is not None]
        criteria = [score for score in judged if score.name.startswith(CRITERION)]
        whole = sum(score.weight for score in criteria)
        for score in criteria if whole > 0 else ():
            shares[score.name].add(round(score.weight / whole, 4))
    if not verdicts:
        return JudgeTotals()
    same = {name: min(found) for name, found in shares.items() if len(found) == 1}
    return JudgeTotals(sum(verdicts), len(verdicts), _judge_thresholds(run), same)


def _judge_thresholds(run: int) -> tuple[float, ...]:
    # Without KT, Django keeps this frame and its callers' data until garbage is collected.
    threshold = KT("content__criteria__judge__pass_threshold")
    judged = ScenarioVersion.objects.filter(pk__in=Trial.objects.filter(run=run).values("scenario_version"))
    values = judged.order_by().values_list(threshold, flat=True).distinct()
    return tuple(sorted(float(value) for value in values if value is not None))


def is_single(layer: str, name: str) -> bool:
    """Return whether a score is one of several deciding verdicts."""
    return layer in DECIDING and not is_verdict(layer, name)


def gate_kinds(scores: Sequence[tuple[str, Sequence[ReadScore]]]) -> list[GateKind]:
    """Return totals by kind of gate, most failed first, from the scores of trials by their scenario's key."""
    passed: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    keys: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for key, trial_scores in scores:
        for score in trial_scores:
            if score.passed is not None:
                kind = score.layer, score.name
                total[kind] += 1
                passed[kind] += score.passed
                keys[kind].add(key)
    kinds = [GateKind(*key, passed=passed[key], total=total[key], scenarios=len(keys[key])) for key in total]
    return sorted(kinds, key=lambda kind: (kind.passed - kind.total, kind.name))


def gate_trials(scores: Sequence[Sequence[ReadScore]]) -> tuple[int, int]:
    """Return how many trials passed every gate, and how many had gates."""
    decided = passed = 0
    for trial_scores in scores:
        verdicts = [score.passed for score in trial_scores if score.passed is not None]
        decided += bool(verdicts)
        passed += bool(verdicts) and all(verdicts)
    return passed, decided
