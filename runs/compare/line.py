"""The line of a run: the earlier runs that its verdict compares it with, why these, and its picture.

The picture has their pass rates, and the band where the newest run was expected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.safestring import SafeString

from evalhub.lib.numbers import format_percent
from evalhub.web.charts import LineOfRuns, draw_line
from evalhub.web.states import look_of_state
from evaluators.statistics.comparability import Reasons, outcome_reasons
from evaluators.statistics.line import FEWEST_RUNS, RECENT, SCENARIO_WINDOWS, expected_range
from evaluators.statistics.line_members import AlertDecision, LineRun, Members, members_after
from evaluators.statistics.measure_change import ChangeVerdict
from evaluators.statistics.retest import RetestOutcome
from runs.compare.baselines import NEWEST_FIRST, baseline_of, newest_among, pinned_run, runs_alike
from runs.compare.measure_changes import PASS, LineRuns, read_samples
from runs.models import Alert, Run
from runs.models.comparison import OF_AMOUNTS, OF_SUITE, OPEN_ALERTS, AlertKind, AlertState, Evidence
from runs.models.run import MAINLINE, NOT_CONFIRMING, Trigger, has_too_many_errors
from runs.results.comparability import both_known, find_judge, parts_changed_since
from runs.results.rates import Rate, run_rate
from runs.results.run_list import RunAnswer

READ_RUNS = 60
"""Earlier runs from which a line is made."""
LEAST_SHARE = 0.5
"""The share of a run's scenarios that a run of its line has at least."""
ALONE = Q(old_side__runs__isnull=True) | Q(old_side__runs=[])
"""Runs that are compared with their baseline alone."""
_DECISIONS = {
    AlertState.WONT_FIX.value: AlertDecision.ACCEPTED,
    AlertState.INVALID.value: AlertDecision.REJECTED,
    AlertState.FIXED.value: AlertDecision.FIXED,
}


@dataclass(frozen=True)
class Reference:
    """What a run's verdict is made with."""

    baseline: Run | None
    """The line's newest run, the reference of lists and of measures without a line."""
    earlier: LineRuns = field(default_factory=LineRuns)
    """The runs of the line, from one on; none of experiments, looks and confirmations."""
    is_alone: bool = False
    """The baseline alone decides, and the line says no more than how much runs vary."""
    amounts: Mapping[AlertKind, LineRuns] = field(default_factory=dict)
    """The lines of cost and time, which only their own alerts freeze."""
    since: int | None = None
    """The run whose open alert froze the line."""
    held: Mapping[str, int] = field(default_factory=dict)
    """The scenarios that open alerts name, and that are neither fixed nor released, with the run that named each."""
    is_red: bool = False
    """An open alert is about the suite as a whole."""
    is_pinned: bool = False
    best_of: int = 0
    """Among how many runs the pinned one has the highest pass rate; 0 if it hasn't."""
    members: tuple[Run, ...] = ()
    """All known runs of the line, oldest first; empty for that of the default branch."""

    @property
    def line(self) -> tuple[Run, ...]:
        """The runs that the new one is compared with, one to ten, newest first; none where the baseline alone decides."""
        return () if self.is_alone else self.earlier.old

    @property
    def reasons(self) -> tuple[Mapping[str, Reasons], ...]:
        """What changed in each scenario since each run of `line`, by key."""
        return self.earlier.reasons[self.earlier.pending :][: len(self.line)]

    def stored(self, *, red: Collection[str], worse: Collection[str], since: int | None) -> dict[str, Any]:
        """Return it as `Run.old_side`, with what the comparison found for later runs.

        `red` are the kinds of alerts of whose measures the run is worse, `worse` the held scenarios that look worse in
        it; `since` is the run since which it is red.
        """
        return {
            "runs": [each.pk for each in self.line] if len(self.line) >= FEWEST_RUNS else [],
            "since": since,
            "is_pinned": self.is_pinned,
            "best_of": self.best_of,
            "compared": timezone.now().isoformat(),
            "red": sorted(red),
            "worse": sorted(worse),
        }


def reference_of(run: Run, choice: str) -> Reference:
    """Return what a run is compared with; `choice` is its request's baseline.

    In order: the request's choice, the pinned run, the line of its branch, that of the default branch, and with fewer
    than `FEWEST_RUNS` runs the last one that didn't regress. A run until a verdict has the one run that its looks
    compared with. At most twelve queries.
    """
    if run.trigger == Trigger.CONFIRM or run.looks:
        return Reference(baseline_of(run, choice), is_alone=True)
    pinned = pinned_run(run)
    history = _History(run)
    branches: list[tuple[str, ...]] = list(dict.fromkeys((run.line_branches, MAINLINE)))
    lines = [history.members(each) for each in branches]
    found = [history.line_of(members, branch) for members, branch in zip(lines, branches, strict=True)]
    enough = [place for place, each in enumerate(found) if len(each.old) >= FEWEST_RUNS]
    some = [place for place, each in enumerate(found) if each.old]
    chosen = next(iter((*enough, *some)), len(lines) - 1)
    members, earlier = lines[chosen], found[chosen]
    own = lines[0] if lines[0].pending or choice or pinned else members
    frozen = (
        Reference(None)
        if run.is_experiment
        else Reference(None, since=own.since, held=_held(own), is_red=own.is_red)
    )
    if choice:
        return replace(frozen, baseline=baseline_of(run, choice), earlier=earlier, is_alone=True)
    if pinned is not None:
        best_of = _best_of(pinned, history)
        return replace(
            frozen, baseline=pinned, earlier=earlier, is_alone=True, is_pinned=True, best_of=best_of
        )
    return replace(
        frozen,
        baseline=earlier.old[0] if enough else _last(run, history, lines),
        earlier=earlier,
        amounts={
            kind: history.line_of(history.members(branches[chosen], kind), branches[chosen])
            for kind in OF_AMOUNTS
        },
        # The default branch's own runs say whether it drifts.
        members=() if chosen else tuple(history.runs[key] for key in members.line if key in history.runs),
    )


def _held(members: Members) -> dict[str, int]:
    return {key: next(run.key for run in members.pending if key in run.named) for key in members.held}


def _best_of(pinned: Run, history: _History) -> int:
    others = [each for each in history.recent if each.pk != pinned.pk][-2 * FEWEST_RUNS :]
    if len(others) + 1 < FEWEST_RUNS or max(map(_pass_rate, others)) >= _pass_rate(pinned):
        return 0
    return len(others) + 1


def _pass_rate(run: Run) -> float:
    return run_rate(run).share


def line_runs(run: Run) -> QuerySet[Run]:
    """Return the earlier runs that a run's line is made from, newest first.

    They are finished, of the same suite, target and model, no experiments or confirmations, and have at least two
    thirds of their trials.
    """
    alike = runs_alike(run).filter(NOT_CONFIRMING, pk__lt=run.pk)
    lacking = alike.alias(lacking=2 * F("trials") - 3 * (F("passed") + F("failed"))).filter(lacking__lt=0)
    return lacking.order_by(*NEWEST_FIRST)


class _History:
    """The runs before one, from which lines are made."""

    def __init__(self, run: Run) -> None:
        related = line_runs(run).select_related("project").prefetch_related("alerts")
        recent = list(related[:READ_RUNS])
        judge = find_judge(run)
        self.run = run
        self.alike = [each.pk for each in recent]
        """Also those with another judge."""
        self.recent = [each for each in recent if _is_same(judge, find_judge(each))][::-1]
        self.runs = {each.pk: each for each in self.recent}
        self._known: dict[tuple[int, ...], _Usable] = {}

    def members(self, branches: Sequence[str], kind: AlertKind = AlertKind.REGRESSION) -> Members:
        """Return the line of these branches, as alerts of a kind freeze it."""
        runs = [each for each in self.recent if each.branch in branches]
        first = self._first_red(runs) if kind in OF_SUITE else None
        if first is None:
            return members_after([_past(each, kind) for each in runs])
        begin = first.old_side.get("runs", [])[::-1]
        return members_after([_past(each, kind) for each in (first, *runs)], begin)

    def _first_red(self, branch_runs: Sequence[Run]) -> Run | None:
        """Return the run that froze the line before the oldest of these, and load the runs of its line."""
        since = branch_runs[0].old_side.get("since") if branch_runs else None
        if not since or since in self.runs:
            return None
        runs = Run.objects.select_related("project").prefetch_related("alerts")
        first = runs.filter(pk=since).first()
        if first is not None:
            self.runs |= {each.pk: each for each in runs.filter(pk__in=first.old_side.get("runs", []))}
            self.runs[first.pk] = first
        return first

    def line_of(self, members: Members, branches: Sequence[str]) -> LineRuns:
        """Return the runs of these branches that the new one is compared with.

        Those count that have at least `LEAST_SHARE` of the run's scenarios with the same content. With enough runs of
        the run's own guidance, the line has only these; windows never reach beyond them, nor beyond the run's branch.
        """
        run = self.run
        waiting = [each.key for each in members.pending][::-1][: max(SCENARIO_WINDOWS) - 1]
        joined = [key for key in members.newest if key in self.runs]
        own = [key for key in joined if self.runs[key].guidance_id == run.guidance_id]
        joined = (own if len(own) >= FEWEST_RUNS else joined)[:RECENT]
        runs = [self.runs[key] for key in (*waiting, *joined)]
        alike = takewhile(lambda each: each.guidance_id == run.guidance_id, runs)
        within = {each.pk for each in islice(alike, members.decided) if run.branch in branches}
        pools, reasons = self._usable(runs)
        since = {key: n + 1 for key, n in members.since_fixed.items()} | dict.fromkeys(members.held, 1)
        return LineRuns(
            pools,
            reasons,
            sum(each.pk in waiting for each in pools),
            since,
            1 + sum(each.pk in within for each in pools),
        )

    def _usable(self, runs: Sequence[Run]) -> _Usable:
        """Return the runs that can be compared with the new one, with what changed since each."""
        asked = tuple(each.pk for each in runs)
        if asked not in self._known:
            # The lines of cost and time are mostly the same.
            self._known[asked] = self._find_usable(runs) if runs else ((), ())
        return self._known[asked]

    def _find_usable(self, runs: Sequence[Run]) -> _Usable:
        passes = read_samples([self.run, *runs], [PASS]).get(PASS, {})
        own = passes.get(self.run.pk, {}).keys()
        usable, reasons = [], []
        for earlier, why in zip(runs, parts_changed_since(self.run, runs), strict=True):
            same = (own & passes.get(earlier.pk, {}).keys()) - outcome_reasons(why).keys()
            if same and len(same) >= LEAST_SHARE * len(own):
                usable.append(earlier)
                reasons.append(why)
        return tuple(usable), tuple(reasons)


_Usable = tuple[tuple[Run, ...], tuple[Mapping[str, Reasons], ...]]


def _is_same(one: str, other: str) -> bool:
    one, other = both_known(one, other)
    return one == other


def _past(run: Run, kind: AlertKind) -> LineRun:
    """Return a run as the line sees it whose alerts are of a kind. Expects its alerts to be loaded."""
    kinds = OF_SUITE if kind in OF_SUITE else (kind,)
    alert = next((each for each in run.alerts.all() if each.kind in kinds), None)
    decision = decision_on(alert) if alert else None
    decided = alert.decided or alert.created if alert and decision is not AlertDecision.OPEN else None
    return LineRun(
        run.pk,
        is_red=kind in _red(run),
        decision=decision,
        named=frozenset(alert.named if alert else ()),
        worse=frozenset(run.old_side.get("worse", ())),
        fixed=frozenset(run.find_retested(RetestOutcome.FIXED)),
        is_improved=kind in OF_SUITE and run.verdict == ChangeVerdict.IMPROVED,
        finished=(run.finished or run.created).timestamp(),
        decided=decided.timestamp() if decided else None,
        is_other=run.configuration_changed,
    )


def _red(run: Run) -> Collection[str]:
    """Return the kinds of alerts of whose measures a run was worse; older releases stored only the verdict."""
    older = [AlertKind.REGRESSION] if run.verdict == ChangeVerdict.REGRESSED else []
    red: Collection[str] = run.old_side.get("red", older)
    return red


def decision_on(alert: Alert) -> AlertDecision:
    """Return how an alert ended: a person's decision, or not confirmed."""
    if alert.state not in OPEN_ALERTS:
        return _DECISIONS[alert.state]
    if alert.evidence == Evidence.NOT_CONFIRMED:
        return AlertDecision.REJECTED
    return AlertDecision.OPEN


def _last(run: Run, history: _History, lines: Sequence[Members]) -> Run | None:
    """Return the newest run that didn't regress, of the branch, else of the default branch, else of any."""
    for members in lines:
        among = [*members.line[-READ_RUNS:], *([members.improved] if members.improved else [])]
        if chosen := newest_among(run, among):
            return chosen
    waiting = {member.key for members in lines for member in members.pending}
    return newest_among(run, [key for key in history.alike if key not in waiting])


RUNS_SHOWN = 12
"""Runs of a line in its picture, the newest included."""
LONGEST_FLAG = 24


class DrawnRun(NamedTuple):
    """A run in a picture."""

    passed: int
    failed: int
    errors: int
    verdict: str
    tool_version: str
    pass_rate: float | None = None

    @property
    def rate(self) -> Rate:
        return run_rate(self)

    @property
    def is_measured(self) -> bool:
        """Whether its pass rate belongs in the picture of a line."""
        return bool(self.rate.n) and not has_too_many_errors(self.passed, self.failed, self.errors)


def line_of_runs(runs: Sequence[DrawnRun], answer: RunAnswer) -> LineOfRuns | None:
    """Return the picture of runs, the oldest first; None where the newest has no result.

    `answer` is the newest run's. The band is that of the runs before a regression.
    """
    if not runs or not runs[-1].rate.n:
        return None
    drawn = [*(run for run in runs[:-1] if run.is_measured), runs[-1]][-RUNS_SHOWN:]
    since = len(drawn) - 1
    if answer == "regressed":
        while since and drawn[since - 1].verdict == ChangeVerdict.REGRESSED:
            since -= 1
    newest = drawn[-1].rate
    return LineOfRuns(
        rates=[run.rate.share for run in drawn],
        interval=(newest.low, newest.high),
        band=expected_range([(run.rate.share, run.rate.n) for run in drawn[:since]], newest.n),
        look=look_of_state(answer)[0],
        since=since if answer == "regressed" and since else None,
        flags=_flags(drawn),
    )


def draw_large(line: LineOfRuns, label: str) -> SafeString:
    """Return a line's large picture, for wide screens and for narrow ones."""
    wide, narrow = (
        draw_line(line, label=label, show=format_percent, is_narrow=is_narrow) for is_narrow in (False, True)
    )
    return wide + narrow


def _flags(runs: Sequence[DrawnRun]) -> dict[int, str]:
    """Return where the tool's version changed last: one flag, so that names don't overlap."""
    versions = [run.tool_version for run in runs]
    changes = [n for n in range(1, len(runs)) if versions[n] and versions[n] != versions[n - 1]]
    return {changes[-1]: versions[changes[-1]][:LONGEST_FLAG]} if changes else {}
