"""Look at a run until a verdict once its trials have ended: add the next look's trials, or let it close.

Everything happens in the transaction of the look, under the lock of its launch: a look is made once however many
workers see the end of its trials, and the tick makes it if the worker that recorded the last one was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Count, Q

from evaluators.statistics.looks import (
    Levels,
    LookDecision,
    StoredLook,
    decide_look,
    look_sizes,
    planned_levels,
    unplanned_levels,
)
from runs.compare.line import reference_of
from runs.compare.looks import (
    ComparedSides,
    extensions_of,
    information_before,
    look_as_stored,
    looks_of,
    read_state,
    stored_looks,
)
from runs.compare.measure_changes import HEADLINE, rule_of
from runs.engine import retesting
from runs.engine.retesting import add_trials
from runs.models import Launch, Run, Trial
from runs.models.run import Arm, Preset, RunState
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.results import spending

RELATED = ("project", "launch", "suite", "target", "guidance")
NO_BASELINE = "No trials were added after the first look, because there is no baseline to compare with."


@dataclass(frozen=True)
class _Plan:
    """A run with a plan of looks, and what it is compared with."""

    run: Run
    """The new side."""
    base: Run
    first: int
    most: int
    earlier: list[StoredLook]
    beside: Run | None = None
    """The reference if it runs beside it."""
    previous: Run | None = None
    """The third arm of a lift, which gets the looks' trials; no look compares it."""
    extension: Launch | None = None
    """The launch of further trials, which keeps their looks; else the run does."""

    @property
    def runs(self) -> list[Run]:
        """The runs that take turns."""
        return [each for each in (self.beside, self.run, self.previous) if each is not None]

    @property
    def growing(self) -> list[Run]:
        """Those of them that get further trials: a third arm that was stopped doesn't stop the others."""
        return [each for each in self.runs if each is not self.previous or not _why_stopped(each)]

    def since(self, run: Run) -> int:
        """Return the round of a run from which on its trials count for the plan's sizes."""
        return int(self.extension.request["rounds"][str(run.pk)]) if self.extension else 0

    @property
    def over(self) -> str:
        """Why no trial may follow; empty if some may."""
        stopped = (_why_stopped(side) for side in filter(None, (self.run, self.beside)))
        return next(filter(None, stopped), "") or spending.why_spent(self.run)


def look_at_run(run_id: int) -> tuple[int, ...]:
    """Look at a run whose trials have ended; return the runs to close, none if trials were added. Requires a transaction.

    After its last look, and without a plan of looks at once, scenarios that look worse are run again. A run that takes
    turns with another waits for it.
    """
    run = Run.objects.select_related(*RELATED).filter(pk=run_id, state=RunState.RUNNING, open=0).first()
    if run is None:
        return (run_id,)
    of_run = Q(about=run) | Q(request__base=run.pk)
    extension = Launch.objects.filter(of_run, preset=Preset.MORE, stop__ended=False).first()
    if extension is not None:
        extension = Launch.objects.select_for_update(no_key=True).get(pk=extension.pk)
        return _look_at(run, _plan_of_extension(extension))
    options = RunOptions.model_validate(run.options)
    # Its own trials were looked at when it closed first.
    may_follow = run.rollups_at is None
    if not may_follow or not (options.until_decided or retesting.may_retest(run, options)):
        return (run_id,)
    Launch.objects.select_for_update(no_key=True).only("pk").get(pk=run.launch_id)
    ended = _look_at(run, _plan_of(run.pk)) if options.until_decided else (run_id,)
    return retesting.retest(ended)


def _look_at(run: Run, plan: _Plan | None) -> tuple[int, ...]:
    """Make the next look at a run; return the runs without further trials of looks."""
    if plan is None:
        # Arms are each other's reference.
        if not run.arm and NO_BASELINE not in run.warnings:
            Run.objects.filter(pk=run.pk).update(warnings=[*run.warnings, NO_BASELINE])
        return (run.pk,)
    runs = plan.runs
    ending = [each for each in runs if each.is_open]
    if any(each.open for each in ending):
        # A cancelled side doesn't wait for the other, which makes the last look when its trials have ended.
        return (run.pk,) if any(each.cancel_requested for each in runs if each.pk == run.pk) else ()
    done = tuple(each.pk for each in ending if each.state == RunState.RUNNING and not each.open)
    if not _look(plan):
        return done
    return tuple(each for each in done if each not in [run.pk for run in plan.growing])


def _plan_of(run_id: int) -> _Plan | None:
    """Return the plan of an arm's or a run's looks; None if there is nothing to compare with. Reads the runs again."""
    runs = Run.objects.select_related(*RELATED)
    run = runs.get(pk=run_id)
    reference = run.pk if run.arm == Arm.REFERENCE else run.reference_id
    arms = (
        {each.arm: each for each in runs.filter(Q(pk=reference) | Q(reference=reference))} if run.arm else {}
    )
    run = arms.get(Arm.NEW, run)
    other = arms.get(Arm.REFERENCE)
    options = RunOptions.model_validate(run.options)
    old = other or (None if run.arm else reference_of(run, options.baseline).baseline)
    if old is None or old.is_unusable:
        return None
    most = options.max_trials or options.trials
    return _Plan(run, old, options.trials, most, looks_of(run), other, arms.get(Arm.PREVIOUS))


def _plan_of_extension(launch: Launch) -> _Plan:
    """Return the plan of two runs' further trials. Reads the runs again."""
    runs = Run.objects.select_related(*RELATED).in_bulk([launch.request["base"], launch.about_id])
    base, new = runs[launch.request["base"]], runs[launch.about_id or 0]
    looks = stored_looks(launch.stop["looks"])
    return _Plan(new, base, launch.stop["first"], launch.stop["most"], looks, base, extension=launch)


def _why_stopped(run: Run) -> str:
    """Return why a run gets no further trial of its own; empty if it may."""
    if run.cancel_requested or run.state == RunState.CANCELLED:
        return f"Run {run.pk} was cancelled."
    if run.state == RunState.FINISHED:
        return f"Run {run.pk} ended before."
    later = run.trial_set.filter(round__gt=0, is_retest=False, state=TrialState.CANCELLED)
    if run.cancelled or later.exists():
        return next(
            (text for text in run.warnings if text.endswith(" did not run.")), "Trials were cancelled."
        )
    return run.no_verdict if run.is_unusable else ""


def _look(plan: _Plan) -> bool:
    """Make and store a look; return whether trials were added."""
    layer, _, name = HEADLINE[0].partition("/")
    smallest = rule_of(plan.run.project, layer, name, "rate", "higher").smallest_effect
    limit = plan.most + (_earlier_trials(plan) if plan.extension else 0)
    sides = read_state(plan.base, plan.run, smallest, limit, is_paired=plan.beside is not None)
    if sides is None or (
        plan.extension
        and not all(
            each.trial_set.filter(round__gte=plan.since(each), outcome__in=("pass", "fail")).exists()
            for each in plan.runs
        )
    ):
        _save(plan, plan.earlier, goes_on=False)
        return False
    earlier = plan.earlier
    if earlier and earlier[-1].decision is not LookDecision.GO_ON:
        if earlier[-1].trials == sides.trials:
            # The worker was lost between the last look and the close.
            return False
        # Errors were run again after it.
        earlier = earlier[:-1]
    sizes = look_sizes(plan.first, plan.most)
    over = plan.over
    is_last = bool(over) or len(earlier) + 1 >= len(sizes)
    looked = look_as_stored(
        decide_look(sides.state, _levels(plan, earlier, sides), is_last=is_last), sides, reason=over
    )
    goes_on = looked.decision is LookDecision.GO_ON
    size = sizes[len(earlier) + 1] if goes_on else 0
    if goes_on and not sum(_add_trials(plan, each, looked.undecided, size) for each in plan.growing):
        looked, goes_on = replace(looked, decision=LookDecision.LIMIT, undecided=()), False
    _save(plan, [*earlier, looked], goes_on=goes_on)
    return goes_on


def _save(plan: _Plan, looks: Sequence[StoredLook], *, goes_on: bool) -> None:
    rows = [each.to_json() for each in looks]
    if plan.extension:
        plan.extension.stop |= {"looks": rows, "ended": not goes_on}
        plan.extension.save(update_fields=["stop"])
    else:
        Run.objects.filter(pk=plan.run.pk).update(looks=rows)


def _levels(plan: _Plan, earlier: Sequence[StoredLook], sides: ComparedSides) -> Levels:
    if plan.extension is None:
        return planned_levels([*(each.fractions for each in earlier), sides.fractions])
    others = [each for each in extensions_of(plan.runs) if each.launch.pk < plan.extension.pk]
    before = information_before(plan.base, plan.run, [look for each in others for look in each.looks])
    return unplanned_levels([*before, *(each.information for each in earlier), sides.information])


def _earlier_trials(plan: _Plan) -> int:
    """Return the most trials of a scenario before the further ones."""
    most = 0
    for run in plan.runs:
        before = Trial.objects.filter(run=run, round__lt=plan.since(run), is_retest=False).order_by()
        most = max(most, *before.values_list("scenario").annotate(n=Count("pk")).values_list("n", flat=True))
    return most


def _add_trials(plan: _Plan, run: Run, keys: Sequence[str], size: int) -> int:
    """Queue trials of these scenarios until each has so many; return their number."""
    counted = Trial.objects.filter(
        run=run, round__gte=plan.since(run), is_retest=False, scenario__key__in=keys
    )
    have = dict(counted.order_by().values_list("scenario__key").annotate(Count("pk")))
    return add_trials(run, {key: size - n for key, n in have.items()})
