"""Read each scenario's recent trials, for strips of dots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from evaluators.statistics.comparability import Standard, outcome_parts
from evaluators.statistics.scenario_classes import (
    GAP,
    ClassEvidence,
    ScenarioClass,
    class_probability,
    classify,
)
from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.results.comparability import (
    judge_named,
    parts_by_pk,
    scenario_standards,
    standard_with_judge,
    with_adopted,
)
from runs.results.counting import counting_of, read_command_readers
from runs.results.digests import outcomes_by_scenario
from runs.results.rates import Rate
from scenarios.models import Suite

LENGTH = 20
"""Trials in a strip, and the most runs searched for them."""
CHUNK = 4
"""Runs read at once."""
MOST_TRIALS = 400
"""Stop searching older runs after this many trials: twenty for each of twenty scenarios."""


Standards = Mapping[int, Mapping[int, Standard]]
"""Standards by suite version and scenario."""


@dataclass(frozen=True)
class OutcomeHistory:
    """Outcomes of one scenario, oldest first; `gap` marks a change of tool or guidance."""

    outcomes: tuple[str, ...] = ()
    trials: tuple[int, ...] = ()
    """Their keys, with 0 at a gap."""

    @property
    def newest(self) -> int | None:
        return self.trials[-1] if self.trials else None

    @property
    def kind(self) -> ScenarioClass:
        """Return the scenario's class."""
        return classify(self.outcomes)

    @property
    def evidence(self) -> ClassEvidence:
        """Return the reason for the class."""
        return class_probability(self.outcomes)

    @property
    def rate(self) -> Rate:
        return Rate.of(self.outcomes)


@dataclass(frozen=True, order=True)
class Sibling:
    """A trial of the same scenario in the same run."""

    index: int
    pk: int


class Around(NamedTuple):
    """Context of a trial: its scenario's recent trials, those of its run, and the baseline's."""

    strip: OutcomeHistory
    siblings: list[Sibling]
    """By index."""
    baseline: Sibling | None
    """The baseline's trial to compare with; None if none finished."""


class RecentRun(NamedTuple):
    """What a strip needs of a run."""

    tool: str
    guidance: int | None
    suite_version: int
    judge: str
    """The judge's target with its definition's hash; empty if unknown."""
    adopted: Any = None
    """What a person adopted for it, as in its fingerprint."""
    counting: Any = None
    """How its commands are counted, as in `Run.counting`."""


def read_histories(
    suite: Suite,
    *,
    target: int | None = None,
    up_to: int | None = None,
    version: int | None = None,
    known: Standards | None = None,
) -> dict[int, OutcomeHistory]:
    """Return a strip for each recently run scenario of a suite. One query, and two more for open runs and changed suites.

    Trials count if they can be compared with `version` of the suite, by default that of the newest run. `known` are
    standards that were read already.
    """
    return strips_of(recent_runs(suite.pk, target=target, up_to=up_to), version, known)


def recent_runs(
    suite: int, *, target: int | None = None, up_to: int | None = None, experiments: bool = False
) -> dict[int, RecentRun]:
    """Return the newest runs, as many as fill the strips, newest first. One query.

    A run of a hundred trials fills them several times over, so reading twenty such runs would dominate the page.
    """
    judge = ("options__judge", "fingerprint__judge", "fingerprint__judge_sha256", "fingerprint__adopted")
    columns = ("pk", "tool_version", "guidance_id", "suite_version_id", *judge, "counting", "trials")
    rows = _runs(suite, target, up_to, experiments).values_list(*columns)[:LENGTH]
    recent: dict[int, RecentRun] = {}
    trials = 0
    for pk, tool, guidance, version, judged, name, sha256, adopted, counting, n in rows.iterator(CHUNK):
        if trials >= MOST_TRIALS:
            break
        recent[pk] = RecentRun(tool, guidance, version, judge_named(judged, name, sha256), adopted, counting)
        trials += n
    return recent


def strips_of(
    recent: Mapping[int, RecentRun], version: int | None = None, known: Standards | None = None
) -> dict[int, OutcomeHistory]:
    """Return the strips of runs. At most two queries."""
    trials = Trial.objects.filter(run__in=tuple(recent), round=0, state=TrialState.FINISHED).order_by()
    ended = _of_trials(trials.values_list("scenario_id", "outcome", "run_id", "pk"))
    return _strips(recent, ended, _left_out(recent, version, known or {}))


def _left_out(
    recent: Mapping[int, RecentRun], version: int | None, known: Standards
) -> dict[int, frozenset[int]]:
    """Return the scenarios of each run whose outcomes can't be compared with the newest; one query if any might not."""
    newest = next(iter(recent.values()), None)
    if newest is None:
        return {}
    # Runs of older releases don't know their judge.
    like = newest._replace(suite_version=version or newest.suite_version)
    others = {
        pk: run._replace(judge=run.judge or like.judge if like.judge else "") for pk, run in recent.items()
    }
    others = {pk: run for pk, run in others.items() if run[2:] != like[2:]}
    if not others:
        return {}
    needed = {like.suite_version, *(run.suite_version for run in others.values())}
    standards = known if needed <= known.keys() else scenario_standards(needed)
    wanted = _standards(standards, like)
    counted = _counted_differently(like, others)
    return {
        pk: frozenset(
            scenario
            for scenario, scenario_standard in _standards(standards, run).items()
            if scenario in counted.get(pk, ())
            or (scenario in wanted and outcome_parts(scenario_standard, wanted[scenario]))
        )
        for pk, run in others.items()
    }


def _counted_differently(like: RecentRun, others: Mapping[int, RecentRun]) -> dict[int, frozenset[int]]:
    """Return the scenarios of each run with a gate that reads commands, where these are counted differently.

    One query, none where all count alike.
    """
    differing = {pk: run for pk, run in others.items() if (run.counting or None) != (like.counting or None)}
    if not differing:
        return {}
    readers = read_command_readers({like.suite_version, *(run.suite_version for run in differing.values())})
    return {
        pk: frozenset(
            scenario
            for scenario, key in readers[run.suite_version].keys.items()
            if key in readers[run.suite_version].gates
            and (one := counting_of(run.counting, key))
            and (other := counting_of(like.counting, key))
            and one != other
        )
        for pk, run in differing.items()
        if run.suite_version in readers
    }


def _standards(known: Standards, run: RecentRun) -> dict[int, Standard]:
    """Return a run's standards with its judge and what a person adopted."""
    standards = {pk: standard_with_judge(each, run.judge) for pk, each in known[run.suite_version].items()}
    return with_adopted(standards, parts_by_pk(run.adopted))


def strip_around(trial: Trial) -> Around:
    """Return the strip of a trial's scenario on its target, its scenario's trials in its run, and the baseline's.

    Two queries; expects the trial's run to be loaded.
    """
    run, scenario = trial.run, trial.scenario_id
    recent = recent_runs(run.suite_id, target=run.target_id, experiments=True)
    runs = {*recent, run.pk, *([run.baseline_id] if run.baseline_id else [])}
    trials = list(_of_scenario(tuple(runs), scenario))
    siblings = sorted([Sibling(index, pk) for owner, pk, index, *_ in trials if owner == run.pk])
    ended = [
        (scenario, outcome, owner, pk)
        for owner, pk, _, later, state, outcome in trials
        if state == TrialState.FINISHED and not later
    ]
    before = [
        (outcome == "error", index != trial.index, Sibling(index, pk))
        for owner, pk, index, later, state, outcome in trials
        if owner == run.baseline_id and state == TrialState.FINISHED and not later
    ]
    # Prefer trials that passed or failed, then the same index.
    baseline = min(before)[-1] if before else None
    return Around(_strip(scenario, _of_trials(ended), recent), siblings, baseline)


def runs_of_suite_state(suite: Any, *, with_run: int | None = None) -> QuerySet[Run]:
    """Return the runs that a suite's state is read from, newest first: without experiments, unless it is `with_run`.

    `suite` is its key, or an `OuterRef` to it.
    """
    counts = Q(is_experiment=False)
    return Run.objects.filter(counts | Q(pk=with_run) if with_run else counts, suite=suite).order_by("-pk")


def _runs(suite: int, target: int | None, up_to: int | None, experiments: bool) -> QuerySet[Run]:
    # The page of an experiment shows its own trials after those of adopted guidance.
    runs = (
        Run.objects.filter(suite=suite).order_by("-pk")
        if experiments
        else runs_of_suite_state(suite, with_run=up_to)
    )
    if up_to is not None:
        runs = runs.filter(pk__lte=up_to)
    return runs if target is None else runs.filter(target=target)


Ended = Mapping[int, Mapping[int, Sequence[tuple[int, str]]]]
"""The finished trials' key and outcome by run and scenario, ordered by key."""


def _of_trials(rows: Iterable[tuple[int, str, int, int]]) -> Ended:
    by_run: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for scenario, outcome, run, pk in rows:
        by_run[run].append((scenario, pk, outcome))
    return {run: outcomes_by_scenario(trials) for run, trials in by_run.items()}


def _of_scenario(
    runs: tuple[int, ...], scenario: int
) -> QuerySet[Trial, tuple[int, int, int, int, str, str]]:
    # Unordered: with an order SQLite would scan the scenario's whole history.
    trials = Trial.objects.filter(run__in=runs, scenario=scenario).order_by()
    return trials.values_list("run_id", "pk", "index", "round", "state", "outcome")


def _strips(
    recent: Mapping[int, RecentRun], ended: Ended, left_out: Mapping[int, frozenset[int]]
) -> dict[int, OutcomeHistory]:
    scenarios = dict.fromkeys(key for run in recent if run in ended for key in ended[run])
    return {key: _strip(key, ended, recent, left_out) for key in scenarios}


def _strip(
    scenario: int,
    ended: Ended,
    recent: Mapping[int, RecentRun],
    left_out: Mapping[int, frozenset[int]] | None = None,
) -> OutcomeHistory:
    """Return a scenario's recent trials from runs ordered newest first."""
    newest: list[tuple[int, str]] = []
    after: tuple[str, int | None] | None = None
    room = LENGTH
    for run, version in recent.items():
        outcomes = ended[run].get(scenario) if run in ended else None
        if not outcomes or (left_out and scenario in left_out.get(run, ())):
            continue
        if after is not None and version[:2] != after:
            newest.append((0, GAP))
        after = version[:2]
        newest += outcomes[: -room - 1 : -1]
        room -= len(outcomes)
        if room <= 0:
            break
    newest.reverse()
    return OutcomeHistory(tuple([outcome for _, outcome in newest]), tuple([pk for pk, _ in newest]))
