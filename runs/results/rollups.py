"""Aggregate a closed run's trials into the rows that trends, comparisons and statistics read.

Also words for tokens, notes on costs, and the warning that no call of the tool ever started.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from django.db.models import F, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone
from msgspec import Struct

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import format_count, format_money
from evaluators.grading.costs import NO_RATE, TrialCost, cost_sentences
from evaluators.tool_use.attempts import Attempts
from evaluators.tool_use.flag_confusion import Confusion
from evaluators.tool_use.not_started import NotStarted, describe_not_started
from evaluators.tool_use.tool import Tool
from runs.db import statements
from runs.models import (
    FlagConfusion,
    GuidanceComparison,
    JudgeCalibration,
    JudgingRecord,
    LaterMeasure,
    Run,
    RunMeasure,
    SubcommandMeasure,
    Trial,
)
from runs.models.trial import TrialState
from runs.results.counting import Counting, choose_countings, counts_otherwise
from runs.results.counting import as_stored as counting_of_run
from runs.results.digests import FINISHED, read_scores
from runs.results.layer_totals import ReadScore, is_vacuous
from runs.results.measures import measure_ids

FIRST_TRIALS = 3
"""So many trials of a run decide that its tool never starts; all of a shorter run."""


def describe_tool_not_started(run: int) -> str:
    """Return in how many trials of a run no call of the tool started, in sentences.

    Empty unless the first three finished trials, or all of fewer, called the tool and no call of it started. One query,
    one more if so.
    """
    rows = list(_finished(run).values_list("detail__not_started", flat=True))
    if not rows or not all(rows[:FIRST_TRIALS]):
        return ""
    tool = Tool.model_validate(
        _finished(run).values_list("scenario_version__content__criteria__tool", flat=True).first() or {}
    )
    found = [msgspec.convert(row, NotStarted) for row in rows if row]
    return describe_not_started(found, tool.title, len(rows))


def describe_if_never_started(run: int) -> str:
    """Return what `describe_tool_not_started` does once exactly the first three trials have finished; empty before and after."""
    finished = list(_finished(run).values_list("detail__not_started", flat=True)[: FIRST_TRIALS + 1])
    return describe_tool_not_started(run) if len(finished) == FIRST_TRIALS and all(finished) else ""


def _finished(run: int) -> QuerySet[Trial, Any]:
    finished = Trial.objects.filter(run=run, round=0, state=TrialState.FINISHED)
    return finished.order_by(F("finished").asc(nulls_last=True), "pk")


class PaidTrial(Struct, frozen=True):
    """The parts of a trial's detail that its cost is explained by."""

    cost: TrialCost | None = None
    cost_limit: str = ""


def trial_warnings(detail: Mapping[str, Any]) -> list[str]:
    """Return notes on a trial's cost and its limit; empty without any."""
    limit = detail.get("cost_limit") or ""
    return [*([limit] if limit else []), *cost_sentences(detail.get("cost") or {}, format_money)]


def run_notes(trials: Iterable[PaidTrial]) -> list[str]:
    """Return the same of a run's trials, each sentence with their number."""
    known = list(trials)
    costs = [each.cost for each in known if each.cost]
    limited = sum(bool(each.cost_limit) for each in known)
    differing = sum(each.differs for each in costs)
    no_rate = sum(each.in_full == NO_RATE for each in costs)
    sentences = (
        (limited, "reached the cost limit (cost.max_usd)."),
        (differing, "where the agent's own cost and that of its tokens are more than a tenth apart."),
        (no_rate, "with cached tokens charged in full: the model's price has no rate for them."),
    )
    return [f"{format_count(n, 'trial')} {sentence}" for n, sentence in sentences if n]


_PART_LABELS = {
    "cache_read": "read from cache",
    "cache_write": "written to cache",
    "cache_write_1h": "written to cache for 1 h",
    "reasoning": "reasoning",
}


def token_parts(usage: Mapping[str, int]) -> str:
    """Return a trial's cached and reasoning tokens in words; empty without any."""
    return ", ".join(f"{usage[name]:,} {label}" for name, label in _PART_LABELS.items() if usage.get(name))


Key = tuple[str, str]
"""Layer and name."""

SINGLE_JUDGING = ("judge", "judging")
"""A single call; the judge's score over all calls counts instead."""
PASS = ("trial", "pass")
COMPLETED = ("interaction", "completed")
FALSE_DONE = ("trial", "false_done")
"""The agent completed, and a gate failed; measured where a trial has gates."""
UNJUDGED = ("judge", "evaluators")
"""Kinds of errors of trials for which a judge's answer is missing."""


@dataclass
class RunningStatistics:
    """Running number, mean and sum of squared differences (Welford 1962)."""

    n: int = 0
    mean: float = 0.0
    m2: float = 0.0
    decided: int = 0
    passed: int = 0

    def add(self, value: float, passed: bool | None = None) -> None:
        self.n += 1
        step = value - self.mean
        self.mean += step / self.n
        self.m2 += step * (value - self.mean)
        if passed is not None:
            self.decided += 1
            self.passed += passed


class _ReadInteraction(Struct, frozen=True, gc=False):
    """The fields read from a trial's interaction; the rest of its JSON is skipped."""

    subcommands: list[dict[str, Any]] = []
    source: str = "none"
    rules: int = 1


class _ReadDetail(Struct, frozen=True, gc=False):
    interaction: _ReadInteraction = _ReadInteraction()
    attempts: dict[str, Attempts] = {}
    flags: list[Confusion] = []
    price_source: str = ""
    cost: TrialCost | None = None
    cost_limit: str = ""


_detail = msgspec.json.Decoder(_ReadDetail)


class MeasuredTrial(NamedTuple):
    """The parts of a trial that rollups read."""

    scenario: int
    outcome: str
    composite: float | None
    seconds: float | None
    cost_usd: float | None
    tokens_in: int | None
    tokens_out: int | None
    scores: str
    detail: str


def _rows(run: int, *, later: bool = False) -> QuerySet[Trial, Any]:
    """Return a run's first trials, which rates count, or the `later` ones of looks and extensions.

    JSON columns are decoded by msgspec, ten times as fast.
    """
    of_round = Q(round__gt=0, is_retest=False) if later else Q(round=0)
    counted = Trial.objects.filter(of_round, run=run, state=FINISHED).exclude(outcome="error")
    columns = ("scenario_id", "outcome", "composite", "seconds", "cost_usd", "tokens_in", "tokens_out")
    texts = Cast("scores", TextField()), Cast("detail", TextField())
    return counted.order_by("position", "pk").values_list(*columns, *texts)


def series_names(scores: Iterable[ReadScore]) -> list[str]:
    """Return the name of each score's measure: of several gates of one kind in a trial, each has its own.

    The first keeps the kind's name, others add their own name, else their number.
    """
    names: list[str] = []
    seen: Counter[str] = Counter()
    for score in scores:
        name = score.name
        if score.layer == "gates":
            seen[name] += 1
            if (n := seen[name]) > 1:
                named = f"{name}: {score.detail.name}" if score.detail.name else ""
                name = named[:LONGEST_NAME] if named and named not in names else f"{name} {n}"
        names.append(name)
    return names


def measured_values(trial: MeasuredTrial) -> Iterator[tuple[Key, float, bool | None]]:
    """Yield a trial's measured values, as (layer, name), value and whether it decided."""
    if trial.outcome:  # Sessions of people have none.
        yield ("trial", "pass"), float(trial.outcome == "pass"), trial.outcome == "pass"
    for name in ("composite", "seconds", "cost_usd", "tokens_in", "tokens_out"):
        value = getattr(trial, name)
        if value is not None:
            yield ("trial", name), float(value), None
    completed: float | None = None
    gates: list[bool] = []
    scores = read_scores(trial.scores)
    for score, name in zip(scores, series_names(scores), strict=True):
        key, value, passed = (score.layer, name), score.value, score.passed
        if key == SINGLE_JUDGING:
            continue
        if key == COMPLETED:
            completed = value
        elif score.layer == "gates" and passed is not None:
            gates.append(passed)
        if value is None and passed is not None:
            value = float(passed)
        if value is not None:
            yield key, value, passed
    if completed is not None and gates:
        yield FALSE_DONE, float(completed == 1 and not all(gates)), None


def series_by_scenario(trials: Iterable[MeasuredTrial]) -> dict[tuple[int, Key], RunningStatistics]:
    """Return these trials' series by scenario and measure.

    Layer 1 counts the trials that are counted as most of their scenario's.
    """
    read = [(trial, _detail.decode(trial.detail).interaction) for trial in trials]
    return _sum_values(read, choose_countings((trial.scenario, metrics) for trial, metrics in read))


def _sum_values(
    trials: Iterable[tuple[MeasuredTrial, _ReadInteraction]], countings: Mapping[int, Counting | None]
) -> dict[tuple[int, Key], RunningStatistics]:
    series: dict[tuple[int, Key], RunningStatistics] = defaultdict(RunningStatistics)
    for trial, metrics in trials:
        is_other = counts_otherwise(metrics, countings.get(trial.scenario))
        for key, value, passed in measured_values(trial):
            if key == COMPLETED or key[0] != COMPLETED[0] or not is_other:
                series[trial.scenario, key].add(value, passed)
    return series


def over_scenarios(series: dict[tuple[int, Key], RunningStatistics]) -> dict[Key, RunningStatistics]:
    """Return each measure's series over scenario means, and pass series over all decided values."""
    totals: dict[Key, RunningStatistics] = {}
    for (_, key), statistics in series.items():
        total = totals.setdefault(key, RunningStatistics())
        total.add(statistics.mean)
        total.decided += statistics.decided
        total.passed += statistics.passed
    return totals


def so_far(run: int) -> dict[Key, RunningStatistics]:
    """Return an open run's overall rollups so far. One query."""
    return over_scenarios(scenario_series(run))


def scenario_series(run: int) -> dict[tuple[int, Key], RunningStatistics]:
    """Return an open run's rollups by scenario so far. One query."""
    return series_by_scenario(MeasuredTrial(*row) for row in _rows(run))


def write_rollups(run: Run, *, is_new: bool = False) -> None:
    """Replace the run's rollups, from its trials without errors; a new run has none yet. Requires a transaction."""
    if not is_new:
        for model in (SubcommandMeasure, FlagConfusion):
            model.objects.filter(run=run).delete()
    trials, details, countings = write_measures(run, is_new=is_new)
    write_later_measures(run, countings)
    counted = [
        (trial, detail)
        for trial, detail in zip(trials, details, strict=True)
        if not counts_otherwise(detail.interaction, countings[trial.scenario])
    ]
    _write_subcommands(run, counted)
    _write_confusions(run, [detail for _, detail in counted])
    run.price_source = "; ".join(sorted({each.price_source for each in details} - {""}))
    run.cost_notes = run_notes(PaidTrial(each.cost, each.cost_limit) for each in details)
    run.is_unchecked = bool(trials) and all(
        is_vacuous(trial.outcome, read_scores(trial.scores)) for trial in trials
    )
    run.not_started = describe_tool_not_started(run.pk)
    run.unjudged = Trial.objects.filter(run=run, round=0, outcome="error", error_kind__in=UNJUDGED).count()
    _mark_measured(run)
    _name_judges(run)


def write_measures(
    run: Run, *, is_new: bool = False
) -> tuple[list[MeasuredTrial], list[_ReadDetail], dict[int, Counting | None]]:
    """Replace the run's measures, and set its counting; return the trials they are of. Requires a transaction."""
    if not is_new:
        RunMeasure.objects.filter(run=run).delete()
    trials = [MeasuredTrial(*row) for row in _rows(run.pk)]
    details = [_detail.decode(trial.detail) for trial in trials]
    read = list(zip(trials, (each.interaction for each in details), strict=True))
    countings = choose_countings((trial.scenario, metrics) for trial, metrics in read)
    run.counting = counting_of_run(countings)
    series = _sum_values(read, countings)
    totals = over_scenarios(series)
    measures = measure_ids(totals)
    run.pass_rate = totals[PASS].mean if PASS in totals else None
    rows = [_row(run, scenario, measures[key], each) for (scenario, key), each in series.items()]
    rows += [_row(run, None, measures[key], each) for key, each in totals.items()]
    statements.insert(RunMeasure, rows)
    return trials, details, countings


def write_later_measures(run: Run, countings: Mapping[int, Counting | None] | None = None) -> None:
    """Replace the measures of a run's looks and extensions. Requires a transaction.

    `countings` is how its first trials count in layer 1.
    """
    LaterMeasure.objects.filter(run=run).delete()
    later = [MeasuredTrial(*row) for row in _rows(run.pk, later=True)]
    if not later:
        return
    if countings is None:
        first = [MeasuredTrial(*row) for row in _rows(run.pk)]
        countings = choose_countings(
            (each.scenario, _detail.decode(each.detail).interaction) for each in first
        )
    series = _sum_values(((each, _detail.decode(each.detail).interaction) for each in later), countings)
    measures = measure_ids({key for _, key in series})
    statements.insert(
        LaterMeasure, [_row(run, pk, measures[key], each) for (pk, key), each in series.items()]
    )


def _mark_measured(run: Run) -> None:
    """Store when the run was measured; comparisons of before are not shown again."""
    run.rollups_at = timezone.now()
    about_verdict = ("is_unchecked", "not_started", "unjudged")
    run.save(
        update_fields=["pass_rate", "price_source", "cost_notes", "rollups_at", "counting", *about_verdict]
    )
    _drop_guidance_comparisons(run)


def _name_judges(run: Run) -> None:
    """List the judge versions of the run's judgings among the project's."""
    rows = JudgingRecord.objects.filter(trial__run=run, passed__isnull=False).order_by()
    judges = rows.values_list("model", "rubric").distinct()
    JudgeCalibration.objects.bulk_create(
        [JudgeCalibration(project_id=run.project_id, model=model, rubric=rubric) for model, rubric in judges],
        ignore_conflicts=True,
    )


def _row(run: Run, scenario: int | None, measure: int, series: RunningStatistics) -> dict[str, Any]:
    return {
        "run": run.pk,
        "scenario": scenario,
        "measure": measure,
        "n": series.n,
        "mean": series.mean,
        "m2": series.m2,
        "passed": series.passed if series.decided else None,
    }


_COUNTS = ("calls", "errors", "first_tries", "helps", "retries_after_failure", "unknown", "helps_before")


def _write_subcommands(run: Run, counted: Iterable[tuple[MeasuredTrial, _ReadDetail]]) -> None:
    counts: dict[tuple[int | None, str], dict[str, int]] = {}
    tries: dict[tuple[int | None, str], Counter[str]] = {}
    for trial, detail in counted:
        for row in detail.interaction.subcommands:
            for scenario in (trial.scenario, None):
                key = scenario, row["name"]
                _count(counts.setdefault(key, dict.fromkeys(_COUNTS, 0)), row)
                if attempted := detail.attempts.get(row["name"]):
                    tries.setdefault(key, Counter()).update(attempted.tries)
    rows = [
        {
            "run": run.pk,
            "scenario": key[0],
            "subcommand": key[1][:200],
            **row,
            "tries": dict(tries.get(key, {})),
        }
        for key, row in counts.items()
    ]
    statements.insert(SubcommandMeasure, rows)


def _write_confusions(run: Run, details: list[_ReadDetail]) -> None:
    counts: dict[tuple[str, str, str, str], list[int]] = {}
    for detail in details:
        for confusion in detail.flags:
            total = counts.setdefault(
                (confusion.subcommand, confusion.kind, confusion.typed, confusion.meant), [0, 0]
            )
            total[0] += confusion.calls
            total[1] += 1
    rows = [
        {
            "run": run.pk,
            "subcommand": key[0][:200],
            "kind": key[1],
            "typed": key[2][:200],
            "meant": key[3][:200],
            "calls": calls,
            "trials": trials,
        }
        for key, (calls, trials) in sorted(counts.items())
    ]
    statements.insert(FlagConfusion, rows)


def _count(total: dict[str, int], row: dict[str, Any]) -> None:
    for name in _COUNTS:
        total[name] += int(row.get(name, 0))


def _drop_guidance_comparisons(run: Run) -> None:
    """Delete the stored comparisons of a run's guidance. At most one query."""
    if run.guidance_id:
        of_guidance = Q(before=run.guidance_id) | Q(after=run.guidance_id)
        GuidanceComparison.objects.filter(of_guidance).delete()
