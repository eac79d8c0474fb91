"""Summarise the trials of runs: for lists as stored, for a run's page with those of its baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import msgspec
from django.db.models import Case, QuerySet, TextField, Value, When
from django.db.models.functions import Cast
from msgspec import Struct
from msgspec.structs import replace

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.model import Command
from evaluators.statistics.run_diagnosis import DiagnosedTrial, DiagnosisThresholds, Finding, diagnose_run
from evaluators.tool_use.attempts import Attempts
from evaluators.tool_use.command_alignment import command_key
from evaluators.tool_use.exposure import quoted_events
from evaluators.tool_use.interaction import Interaction
from runs.models import CommandRecord, Run, Trial
from runs.models.trial import TrialState
from runs.results.counting import choose_countings, counts_otherwise, why_not_recorded
from runs.results.diagnosis_thresholds import read_thresholds
from runs.results.failure_reasons import is_verdict, reasons_of
from runs.results.layer_totals import (
    GateKind,
    LayerTotals,
    ReadScore,
    TotalledTrial,
    gate_kinds,
    gate_trials,
    is_single,
    layer_totals,
    most_lost,
)
from runs.results.repeated_statements import RepeatedStatement, read_judged_statements
from runs.results.subcommand_totals import SubcommandTotal, totals_by_subcommand

# Cached, because enum lookups add up over a page's trials.
FINISHED, RUNNING = TrialState.FINISHED.value, TrialState.RUNNING.value
MOST_LOST = 3
"""Maximum reasons of one trial."""
MOST_STATEMENTS = 4
"""Maximum number of issues, and of highlights, of a run."""


class DigestedTrial(Struct, frozen=True, gc=False):
    """A trial on its run's page."""

    key: str
    """Key of its scenario."""
    progress: str
    """Queued, running, finished or cancelled."""
    outcome: str
    pk: int
    scenario: int
    index: int
    seconds: float | None = None
    cost_usd: float | None = None
    gates_passed: int = 0
    gates_total: int = 0
    judge: float | None = None
    """The judge's score, None if it didn't run."""
    lost: tuple[str, ...] = ()
    """Messages of the layers that failed."""
    disagrees: bool = False
    """Whether the judge disagrees with all other deciding scores; false if unknown."""
    first_try: float | None = None
    """Share of the tool's commands that succeeded at the first try; None if not measured."""
    commands: float | None = None
    """Number of the tool's commands."""
    known: float | None = None
    """How many of them have a known end."""

    @property
    def is_finished(self) -> bool:
        return self.progress == FINISHED

    @property
    def mark(self) -> str:
        """Return the kind of its dot."""
        if self.is_finished:
            return self.outcome or "none"
        return "running" if self.progress == RUNNING else "none"

    @property
    def state(self) -> str:
        return self.outcome or self.progress

    @property
    def number(self) -> int:
        return self.index + 1


class Digest(Struct, frozen=True):
    """The summary of a run's trials."""

    trials: list[DigestedTrial] = []
    """The first trials, which rates count, in execution order."""
    retests: list[DigestedTrial] = []
    """The trials of later rounds, likewise: of looks, extensions and retests."""
    tampered: list[int] = []
    """Trials whose agent changed what decides its gates."""
    gates: list[GateKind] = []
    """Most failed first."""
    gate_trials: tuple[int, int] = (0, 0)
    """Trials that passed every gate, and trials with gates."""
    issues: list[RepeatedStatement] = []
    highlights: list[RepeatedStatement] = []
    judged: int = 0
    """Number of valid judgings."""
    contradictory: list[int] = []
    """Trials with a judging whose total contradicts its weighted criteria."""
    diagnosis: list[Finding] = []
    """Most frequent first."""
    thresholds: DiagnosisThresholds | None = None
    """The thresholds of the diagnosis."""
    subcommands: list[SubcommandTotal] = []
    """By name."""
    layers: LayerTotals = LayerTotals()

    @property
    def ended(self) -> list[DigestedTrial]:
        """Return the finished trials in execution order."""
        return [trial for trial in self.trials if trial.is_finished]

    @property
    def outcomes(self) -> dict[str, list[str]]:
        """Return the finished trials' outcomes by scenario key."""
        return by_key((trial.key, trial.outcome) for trial in self.ended)


def by_key(outcomes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return outcomes by their scenario's key, in their order."""
    grouped: defaultdict[str, list[str]] = defaultdict(list)
    for key, outcome in outcomes:
        grouped[key].append(outcome)
    return dict(grouped)


def outcomes_by_scenario(trials: Iterable[tuple[int, int, str]]) -> dict[int, list[tuple[int, str]]]:
    """Return key and outcome of trials by scenario, in the order of their keys."""
    grouped: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for scenario, pk, outcome in sorted(trials, key=itemgetter(1)):
        grouped[scenario].append((pk, outcome))
    return dict(grouped)


class ReadDetail(Struct, gc=False):
    """The parts of a trial's detail that are read."""

    interaction: Interaction | None = None
    messages: dict[int, str] = {}
    attempts: dict[str, Attempts] = {}
    notes: list[Any] = []
    integrity: list[str] = []
    exposure: dict[str, Any] | None = None


read_scores = msgspec.json.Decoder(list[ReadScore]).decode
_detail = msgspec.json.Decoder(ReadDetail)


def digests_of(runs: Iterable[int], *, why_of: Collection[int] = ()) -> dict[int, Digest]:
    """Return the digests of closed runs as lists need them: their first trials, of `why_of` with why they failed.

    One query.
    """
    found: dict[int, Digest] = {run: Digest() for run in runs}
    failed: defaultdict[int, list[TotalledTrial]] = defaultdict(list)
    why = Case(
        When(outcome__in=("fail", "error"), run__in=why_of, then=Cast("scores", TextField())),
        default=Value("", TextField()),
    )
    trials = Trial.objects.filter(run__in=found, round=0).order_by("position", "pk")
    for *columns, error, run, text in trials.values_list(*_COLUMNS, "error", "run", why):
        scores = read_scores(text) if text else []
        trial = DigestedTrial(*(*columns, 0, 0, None, _find_lost(error, scores, text)))
        found[run].trials.append(trial)
        if trial.outcome == "fail":
            failed[run].append(TotalledTrial(trial.pk, scores, None))
    return {
        run: replace(digest, layers=LayerTotals(lost=most_lost(failed[run]))) for run, digest in found.items()
    }


def judged_trials(runs: Iterable[int]) -> Iterator[tuple[int, bool, DigestedTrial | None]]:
    """Yield of each first trial with a judge and other verdicts its run, whether these passed, and itself if they differ.

    One query.
    """
    trials = Trial.objects.filter(run__in=tuple(runs), round=0).order_by()
    for *columns, run, text in trials.values_list(*_COLUMNS, "run", Cast("scores", TextField())):
        scores = read_scores(text)
        (score, holds), (passed, total) = _judge(scores), _verdicts(scores)
        if score is not None and total:
            differs = holds is (passed < total)
            yield run, passed == total, _trial(columns, scores, ()) if differs else None


def command_sequences(runs: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the tool's commands of the runs' trials, as `command_key` names them, by trial. One query."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    rows = CommandRecord.objects.filter(trial__run__in=runs).order_by("trial_id", "n")
    for trial, line, subcommand in rows.values_list("trial_id", "line", "subcommand"):
        found[trial].append(command_key(line, subcommand))
    return {trial: tuple(commands) for trial, commands in found.items()}


def digest_of(run: Run) -> Digest:
    """Return a run's digest so far. At most six queries.

    JSON columns are read as text and decoded with msgspec, which is ten times as fast.
    """
    trials: list[DigestedTrial] = []
    retests: list[DigestedTrial] = []
    finished = []
    for *columns, error, later, scores_text, detail_text in _rows(run.pk):
        decoded = read_scores(scores_text)
        trial = _trial(columns, decoded, _find_lost(error, decoded, scores_text))
        (retests if later else trials).append(trial)
        if trial.is_finished and not later:
            finished.append((trial, decoded, _detail.decode(detail_text)))
    measured = [each for each in finished if each[0].outcome != "error"]
    countings = choose_countings(
        (trial.scenario, detail.interaction) for trial, _, detail in measured if detail.interaction
    )
    others = {
        trial.pk
        for trial, _, detail in measured
        if detail.interaction and counts_otherwise(detail.interaction, countings[trial.scenario])
    }
    alike = [(trial, detail) for trial, _, detail in measured if trial.pk not in others]
    diagnosed = [
        DiagnosedTrial(
            *(trial.pk, trial.key, detail.interaction, detail.messages, trial.outcome == "fail"),
            quoted_events(detail.exposure),
        )
        for trial, detail in alike
        if detail.interaction
    ]
    scores = [
        (trial.key, [score for score in decoded if is_single(score.layer, score.name)])
        for trial, decoded, _ in finished
    ]
    totalled = [
        TotalledTrial(
            *(trial.pk, decoded, detail.interaction, why_not_recorded(detail.notes)),
            counts=trial.pk not in others,
        )
        for trial, decoded, detail in measured
    ]
    said = read_judged_statements([run.pk])
    # A proof's run belongs to no project.
    limits = read_thresholds(run.project if run.project_id else None, before=run.pk)
    return Digest(
        trials=[
            replace(trial, first_try=None, commands=None, known=None) if trial.pk in others else trial
            for trial in trials
        ],
        retests=retests,
        tampered=[trial.pk for trial, _, detail in finished if detail.integrity],
        gates=gate_kinds(scores),
        gate_trials=gate_trials([each for _, each in scores]),
        issues=said.issues[:MOST_STATEMENTS],
        highlights=said.highlights[:MOST_STATEMENTS],
        judged=said.judged,
        contradictory=said.contradictory,
        diagnosis=diagnose_run(_with_failed(run.pk, diagnosed), limits.limits),
        thresholds=limits,
        subcommands=totals_by_subcommand((detail.interaction, detail.attempts) for _, detail in alike),
        layers=layer_totals(run.pk, totalled),
    )


_COLUMNS = ("scenario__key", "state", "outcome", "pk", "scenario_id", "index", "seconds", "cost_usd")


def _rows(run: int) -> QuerySet[Trial, Any]:
    trials = Trial.objects.filter(run=run).order_by("position", "pk")
    return trials.values_list(
        *_COLUMNS, "error", "round", Cast("scores", TextField()), Cast("detail", TextField())
    )


def _trial(columns: Sequence[Any], scores: Sequence[ReadScore], lost: tuple[str, ...]) -> DigestedTrial:
    key, progress, outcome, pk, scenario, index, seconds, cost_usd = columns
    passed, total = _verdicts(scores)
    values = {score.name: score.value for score in scores if score.layer == "interaction"}
    return DigestedTrial(
        *(key, progress, outcome, pk, scenario, index, seconds, cost_usd),
        *(passed, total, _judge(scores)[0], lost, judge_disagrees(scores)),
        *(values.get("first_try_success_rate"), values.get("total_commands"), values.get("known")),
    )


def judge_disagrees(scores: Sequence[ReadScore]) -> bool:
    """Return whether the judge's verdict differs from that of all other deciding scores; false if one is missing."""
    passed, total = _verdicts(scores)
    return total > 0 and _judge(scores)[1] is (passed < total)


def _verdicts(scores: Iterable[ReadScore]) -> tuple[int, int]:
    """Return how many verdicts without the judge's passed, and their number."""
    verdicts = [
        score.passed
        for score in scores
        if score.passed is not None and score.layer != "judge" and not is_verdict(score.layer, score.name)
    ]
    return sum(verdicts), len(verdicts)


def _judge(scores: Iterable[ReadScore]) -> tuple[float | None, bool | None]:
    verdicts = ((score.value, score.passed) for score in scores if score.layer == score.name == "judge")
    return next(verdicts, (None, None))


def _find_lost(error: str, scores: Iterable[ReadScore], text: str) -> tuple[str, ...]:
    if error:
        return (error[:LONGEST_ERROR],)
    if all(score.passed is not False for score in scores):
        return ()
    return tuple(reason[:LONGEST_ERROR] for reason in reasons_of(msgspec.json.decode(text))[:MOST_LOST])


def _with_failed(run: int, trials: Sequence[DiagnosedTrial]) -> list[DiagnosedTrial]:
    """Return the trials with their failed commands. One query if any command failed."""
    if not any(trial.metrics.error_count for trial in trials):
        return list(trials)
    failed: defaultdict[int, list[Command]] = defaultdict(list)
    rows = CommandRecord.objects.filter(trial__run=run, failed=True).order_by("n")
    for trial, n, line, subcommand, code in rows.values_list(
        "trial_id", "n", "line", "subcommand", "exit_code"
    ):
        failed[trial].append(Command(line, subcommand, code, failed=True, n=n))
    return [
        replace(trial, metrics=replace(trial.metrics, commands=tuple(failed[trial.pk])))
        if trial.pk in failed
        else trial
        for trial in trials
    ]


@dataclass(frozen=True)
class RunTrials:
    """A run's digest, and its baseline's."""

    digest: Digest
    baseline: Digest | None = None

    @property
    def trials(self) -> list[DigestedTrial]:
        """Return the run's trials in execution order."""
        return self.digest.trials

    @cached_property
    def before(self) -> Mapping[str, list[str]]:
        """The baseline's outcomes by scenario key; none without a baseline."""
        return self.baseline.outcomes if self.baseline else {}

    @cached_property
    def outcomes(self) -> Mapping[str, list[str]]:
        """The run's finished outcomes by scenario, if it has a baseline."""
        return self.digest.outcomes if self.baseline else {}


def trials_of(run: Run) -> RunTrials:
    """Return a run's trials and those of its baseline. At most seven queries."""
    baseline = digests_of([run.baseline_id])[run.baseline_id] if run.baseline_id else None
    return RunTrials(digest_of(run), baseline)
