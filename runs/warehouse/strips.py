"""The last trials of each scenario, for strips of dots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from django.db.models import QuerySet

from evalhub.web.paging import LARGEST_KEY
from evalhub.web.prepared import prepared
from runs.kept_digests import contents_of, ended_trials
from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.warehouse.rates import Rate
from scenarios.models import Suite

LENGTH = 20
"""Trials of a strip, and runs that are looked through for them."""
MOST_TRIALS = 400
"""Trials after which no older run is looked through: twenty for each of twenty scenarios."""


@dataclass(frozen=True)
class Strip:
    """Outcomes of one scenario, oldest first; `gap` stands where tool or guidance changed."""

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


def strips(
    suite: Suite, *, target: int | None = None, up_to: int | None = None, scenario: int | None = None
) -> dict[int, Strip]:
    """Return a strip for each scenario of a suite that was run lately, or for one of them. At most three queries."""
    newest = LARGEST_KEY if up_to is None else up_to
    versions = _enough(_runs(suite.pk, newest) if target is None else _runs(suite.pk, newest, target))
    keys = tuple(versions)
    trials = _of_all(keys) if scenario is None else _trials(keys, scenario)
    by_scenario: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for key, outcome, run, pk in sorted(trials, key=itemgetter(3)):
        by_scenario[key].append((outcome, run, pk))
    return {key: _strip(found[-LENGTH:], versions) for key, found in by_scenario.items()}


@prepared
def _runs(
    suite: int, newest: int, target: int | None = None
) -> QuerySet[Run, tuple[int, str, int | None, int]]:
    runs = Run.objects.filter(suite=suite, pk__lte=newest).order_by("-pk")
    if target is not None:
        runs = runs.filter(target=target)
    return runs.values_list("pk", "tool_version", "guidance_id", "trials")[:LENGTH]


def _of_all(runs: tuple[int, ...]) -> list[tuple[int, str, int, int]]:
    """Return the ended trials of some runs: of closed ones as their digests have them, of others by themselves."""
    kept = contents_of(runs)
    digested = [
        (trial.scenario, trial.outcome, run, trial.pk)
        for run, content in kept.items()
        for trial in ended_trials(content)
    ]
    missing = tuple([run for run in runs if run not in kept])
    return digested + _trials(missing) if missing else digested


@prepared
def _trials(runs: tuple[int, ...], scenario: int | None = None) -> QuerySet[Trial, tuple[int, str, int, int]]:
    # In no order: else SQLite goes through all trials that the scenario ever had, for they are in order already.
    trials = Trial.objects.filter(run__in=runs, state=TrialState.FINISHED).order_by()
    if scenario is not None:
        trials = trials.filter(scenario=scenario)
    return trials.values_list("scenario_id", "outcome", "run_id", "pk")


def _enough(runs: Iterable[tuple[int, str, int | None, int]]) -> dict[int, tuple[str, int | None]]:
    """Return tool and guidance of the newest runs, as many as fill the strips.

    A run of hundred trials fills them alone several times over: reading twenty of them would cost
    a page more than everything else on it.
    """
    found: dict[int, tuple[str, int | None]] = {}
    trials = 0
    for pk, tool, guidance, own in runs:
        if trials >= MOST_TRIALS:
            break
        found[pk] = (tool, guidance)
        trials += own
    return found


def _strip(found: Sequence[tuple[str, int, int]], versions: Mapping[int, tuple[str, int | None]]) -> Strip:
    outcomes, trials = list[str](), list[int]()
    before = found[0][1]
    for outcome, run, pk in found:
        if run != before and versions[run] != versions[before]:
            outcomes.append("gap")
            trials.append(0)
        before = run
        outcomes.append(outcome)
        trials.append(pk)
    return Strip(tuple(outcomes), tuple(trials))
