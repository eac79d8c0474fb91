"""Read each scenario's recent trials, for strips of dots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet

from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.warehouse.digests import Digest, by_scenario, digests_of
from runs.warehouse.rates import Rate
from scenarios.models import Suite

LENGTH = 20
"""Trials in a strip, and the most runs searched for them."""
MOST_TRIALS = 400
"""Stop searching older runs after so many trials: twenty for each of twenty scenarios."""


@dataclass(frozen=True)
class Strip:
    """Outcomes of one scenario, oldest first; `gap` marks a change of tool or guidance."""

    outcomes: tuple[str, ...] = ()
    trials: tuple[int, ...] = ()
    """Their keys, with 0 at a gap."""

    @property
    def newest(self) -> int | None:
        return self.trials[-1] if self.trials else None

    @property
    def rate(self) -> Rate:
        passed, failed = self.outcomes.count("pass"), self.outcomes.count("fail")
        return Rate(passed, passed + failed)


@dataclass(frozen=True, order=True)
class Sibling:
    """A trial of the same scenario in the same run."""

    index: int
    pk: int


class Around(NamedTuple):
    """Context of a trial: its scenario's recent trials, those of its run, and the baseline's."""

    strip: Strip
    siblings: list[Sibling]
    """By index."""
    baseline: Sibling | None
    """The baseline's trial to compare with; None if none finished."""


Version = tuple[str, int | None]
"""Version of the tool, and key of the guidance."""


def strips(suite: Suite, *, target: int | None = None, up_to: int | None = None) -> dict[int, Strip]:
    """Return a strip for each recently run scenario of a suite. At most three queries."""
    recent = recent_runs(suite.pk, target=target, up_to=up_to)
    return strips_of(recent, digests_of(recent))


def recent_runs(suite: int, *, target: int | None = None, up_to: int | None = None) -> dict[int, Version]:
    """Return the versions of the newest runs, as many as fill the strips, newest first. One query.

    A run of a hundred trials fills them several times over, so reading twenty such runs would dominate the page.
    """
    found: dict[int, Version] = {}
    trials = 0
    for pk, tool, guidance, own in _runs(suite, target, up_to):
        if trials >= MOST_TRIALS:
            break
        found[pk] = (tool, guidance)
        trials += own
    return found


def strips_of(recent: Mapping[int, Version], kept: Mapping[int, Digest]) -> dict[int, Strip]:
    """Return the strips of runs: closed ones from digests, open ones from trials. One query."""
    ended = {run: kept[run].by_scenario for run in recent if run in kept}
    missing = tuple([run for run in recent if run not in kept])
    return _strips(recent, {**ended, **_of_trials(_trials(missing))} if missing else ended)


def strip_around(trial: Trial) -> Around:
    """Return the strip of a trial's scenario on its target, its scenario's trials in its run, and the baseline's.

    Two queries; expects the trial's run to be loaded.
    """
    run, scenario = trial.run, trial.scenario_id
    recent = recent_runs(run.suite_id, target=run.target_id)
    runs = {*recent, run.pk, *([run.baseline_id] if run.baseline_id else [])}
    trials = list(_of_scenario(tuple(runs), scenario))
    siblings = sorted([Sibling(index, pk) for owner, pk, index, _, _ in trials if owner == run.pk])
    ended = [
        (scenario, outcome, owner, pk)
        for owner, pk, _, state, outcome in trials
        if state == TrialState.FINISHED
    ]
    before = [
        (outcome == "error", index != trial.index, Sibling(index, pk))
        for owner, pk, index, state, outcome in trials
        if owner == run.baseline_id and state == TrialState.FINISHED
    ]
    # Prefer trials that passed or failed, then the same index.
    baseline = min(before)[-1] if before else None
    return Around(_strip(scenario, _of_trials(ended), recent), siblings, baseline)


def _runs(
    suite: int, target: int | None, up_to: int | None
) -> QuerySet[Run, tuple[int, str, int | None, int]]:
    runs = Run.objects.filter(suite=suite).order_by("-pk")
    if up_to is not None:
        runs = runs.filter(pk__lte=up_to)
    if target is not None:
        runs = runs.filter(target=target)
    return runs.values_list("pk", "tool_version", "guidance_id", "trials")[:LENGTH]


Ended = Mapping[int, Mapping[int, Sequence[tuple[int, str]]]]
"""The finished trials' key and outcome by run and scenario, ordered by key."""


def _of_trials(rows: Iterable[tuple[int, str, int, int]]) -> Ended:
    by_run: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for scenario, outcome, run, pk in rows:
        by_run[run].append((scenario, pk, outcome))
    return {run: by_scenario(trials) for run, trials in by_run.items()}


def _trials(runs: tuple[int, ...]) -> QuerySet[Trial, tuple[int, str, int, int]]:
    trials = Trial.objects.filter(run__in=runs, state=TrialState.FINISHED).order_by()
    return trials.values_list("scenario_id", "outcome", "run_id", "pk")


def _of_scenario(runs: tuple[int, ...], scenario: int) -> QuerySet[Trial, tuple[int, int, int, str, str]]:
    # Unordered: with an order SQLite would scan the scenario's whole history.
    trials = Trial.objects.filter(run__in=runs, scenario=scenario).order_by()
    return trials.values_list("run_id", "pk", "index", "state", "outcome")


def _strips(recent: Mapping[int, Version], ended: Ended) -> dict[int, Strip]:
    scenarios = dict.fromkeys(key for run in recent if run in ended for key in ended[run])
    return {key: _strip(key, ended, recent) for key in scenarios}


def _strip(scenario: int, ended: Ended, recent: Mapping[int, Version]) -> Strip:
    """Return a scenario's recent trials from runs ordered newest first."""
    newest: list[tuple[int, str]] = []
    after: Version | None = None
    room = LENGTH
    for run, version in recent.items():
        own = ended[run].get(scenario) if run in ended else None
        if not own:
            continue
        if after is not None and version != after:
            newest.append((0, "gap"))
        after = version
        newest += own[: -room - 1 : -1]
        room -= len(own)
        if room <= 0:
            break
    newest.reverse()
    return Strip(tuple([outcome for _, outcome in newest]), tuple([pk for pk, _ in newest]))
