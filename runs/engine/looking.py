"""Look at a run until a verdict once its trials have ended: add the next look's trials, or let it close.

Everything happens in the transaction of the look, under the lock of its launch: a look is made once however many
workers see the end of its trials, and the tick makes it if the worker that recorded the last one was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Count

from evaluators.statistics.error_shares import Levels
from evaluators.statistics.looks import (
    LookDecision,
    StoredLook,
    decide_look,
    look_sizes,
    planned_levels,
    unplanned_levels,
)
from runs.compare.fresh_trials import changed_meanwhile, fresh_runs
from runs.compare.line import reference_of
from runs.compare.looks import ComparedSides, information_so_far, look_as_stored, looks_of, read_state
from runs.compare.measure_changes import HEADLINE, rule_of
from runs.engine import retesting
from runs.engine.added_trials import add_trials
from runs.models import Launch, Run, Trial
from runs.models.run import RunState
from runs.models.run_options import RunOptions
from runs.results import spending

RELATED = ("project", "launch", "suite", "target", "guidance", "more_of")
NO_BASELINE = "No trials were added after the first look, because there is no baseline to compare with."


@dataclass(frozen=True)
class _Plan:
    """A run with a plan of looks, and what it is compared with."""

    run: Run
    """The new side, which keeps the looks."""
    options: RunOptions
    beside: Run | None
    """The reference if it runs beside it."""
    before: tuple[Run, ...]
    """The runs that count for the reference, the one compared first."""
    after: tuple[Run, ...]
    over: str
    """Why no trial may follow; empty if some may."""
    previous: Run | None = None
    """The third arm of a lift, which gets the looks' trials; no look compares it."""

    @property
    def runs(self) -> list[Run]:
        """The runs that take turns."""
        return [each for each in (self.beside, self.run, self.previous) if each is not None]

    @property
    def growing(self) -> list[Run]:
        """Those of them that get further trials: a third arm that was stopped doesn't stop the others."""
        return [each for each in self.runs if each is not self.previous or not _why_stopped(each)]

    @property
    def is_further(self) -> bool:
        """Whether its trials are further trials of compared runs, which were looked at without a plan."""
        return self.run.more_of_id is not None


def look_at_run(run_id: int) -> tuple[int, ...]:
    """Look at a run whose trials have ended; return the runs to close, none if trials were added. Requires a transaction.

    After its last look, and without a plan of looks at once, scenarios that look worse are run again. A run that takes
    turns with another waits for it.
    """
    run = Run.objects.select_related(*RELATED).filter(pk=run_id, state=RunState.RUNNING, open=0).first()
    if run is None:
        return (run_id,)
    options = RunOptions.model_validate(run.options)
    if not options.until_decided and not retesting.may_retest(run, options):
        return (run_id,)
    Launch.objects.select_for_update(no_key=True).only("pk").get(pk=run.launch_id)
    ended = _look_at(run) if options.until_decided else (run_id,)
    return retesting.retest(ended)


def _look_at(run: Run) -> tuple[int, ...]:
    """Make the next look at a run; return the runs without further trials of looks."""
    plan = _plan_of(run.pk)
    if plan is None:
        # Arms are each other's reference.
        if not run.options.get("looks_with") and NO_BASELINE not in run.warnings:
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
    """Return the plan of either side's run; None if there is nothing to compare with. Reads the runs anew."""
    runs = Run.objects.select_related(*RELATED)
    run = runs.get(pk=run_id)
    options = RunOptions.model_validate(run.options)
    other = runs.filter(pk=options.looks_with).first() if options.looks_with else None
    if options.is_previous_arm:
        return _plan_of(other.pk) if other else None
    if options.is_old_side:
        if other is None:
            return None
        run, other = other, run
    old = other or reference_of(run, options.baseline).baseline
    if old is None or old.is_unusable:
        return None
    before, after, changed = _sides(old, run)
    beside_both = {"launch": run.launch_id, "options__is_previous_arm": True, "options__looks_with": run.pk}
    previous = runs.filter(**beside_both).first() if options.lift else None
    return _Plan(run, options, other, before, after, _why_over(run, other) or changed, previous)


def _sides(old: Run, new: Run) -> tuple[tuple[Run, ...], tuple[Run, ...], str]:
    """Return the runs that count for both sides, and why fresh trials don't; empty if they do."""
    if old.more_of is None or new.more_of is None:
        return (old,), (new,), ""
    compared = (old.more_of, new.more_of)
    further = [
        fresh.run
        for fresh in fresh_runs(compared)
        if fresh.is_pooled and fresh.run.pk not in (old.pk, new.pk)
    ]
    sides = [
        (base, *(run for run in further if run.more_of_id == base.pk), extension)
        for base, extension in zip(compared, (old, new), strict=True)
    ]
    changed = [*changed_meanwhile(compared[0], old), *changed_meanwhile(compared[1], new)]
    why = f"{', '.join(dict.fromkeys(changed))} changed, so the trials can't be pooled." if changed else ""
    return sides[0], sides[1], why


def _why_over(run: Run, beside: Run | None) -> str:
    """Return why no trial may follow, whatever the look finds; empty if some may."""
    stopped = (_why_stopped(side) for side in filter(None, (run, beside)))
    return next(filter(None, stopped), "") or spending.why_spent(run)


def _why_stopped(run: Run) -> str:
    """Return why a run gets no further trial of its own; empty if it may."""
    if run.cancel_requested or run.state == RunState.CANCELLED:
        return f"Run {run.pk} was cancelled."
    if run.state == RunState.FINISHED:
        return f"Run {run.pk} ended before."
    if run.cancelled:
        return next(
            (text for text in run.warnings if text.endswith(" did not run.")), "Trials were cancelled."
        )
    return run.no_verdict if run.is_unusable else ""


def _look(plan: _Plan) -> bool:
    """Make and store a look; return whether trials were added."""
    layer, _, name = HEADLINE[0].partition("/")
    smallest = rule_of(plan.run.project, layer, name, "rate", "higher").smallest_effect
    most = plan.options.max_trials or plan.options.trials
    limit = most + _earlier_trials(plan) if plan.is_further else most
    sides = read_state(plan.before, plan.after, smallest, limit, is_paired=plan.beside is not None)
    if sides is None:
        return False
    earlier = looks_of(plan.run)
    if earlier and earlier[-1].decision is not LookDecision.GO_ON:
        if earlier[-1].trials == sides.trials:
            # The worker was lost between the last look and the close.
            return False
        # Errors were run again after it.
        earlier = earlier[:-1]
    sizes = look_sizes(plan.options.trials, most)
    is_last = bool(plan.over) or len(earlier) + 1 >= len(sizes)
    looked = look_as_stored(
        decide_look(sides.state, _levels(plan, earlier, sides), is_last=is_last), sides, reason=plan.over
    )
    goes_on = looked.decision is LookDecision.GO_ON
    size = sizes[len(earlier) + 1] if goes_on else 0
    if goes_on and not sum(_add_trials(each, looked.undecided, size) for each in plan.growing):
        looked, goes_on = replace(looked, decision=LookDecision.LIMIT, undecided=()), False
    Run.objects.filter(pk=plan.run.pk).update(looks=[each.to_json() for each in (*earlier, looked)])
    return goes_on


def _levels(plan: _Plan, earlier: Sequence[StoredLook], sides: ComparedSides) -> Levels:
    if not plan.is_further:
        return planned_levels([*(each.fractions for each in earlier), sides.fractions])
    before = information_so_far(
        *([run.pk for run in side if not run.is_open] for side in (plan.before, plan.after))
    )
    return unplanned_levels([*before, *(each.information for each in earlier), sides.information])


def _earlier_trials(plan: _Plan) -> int:
    """Return the most trials of a scenario before the further ones."""
    before = read_state(
        [run for run in plan.before if not run.is_open],
        [run for run in plan.after if not run.is_open],
        smallest=0.0,
        most=1,
        is_paired=True,
    )
    return max(before.most) if before else 0


def _add_trials(run: Run, keys: Sequence[str], size: int) -> int:
    """Queue trials of these scenarios until each has so many; return their number."""
    first = Trial.objects.filter(run=run, is_retest=False, scenario__key__in=keys).order_by()
    have = dict(first.values_list("scenario__key").annotate(Count("pk")))
    return add_trials(run, {key: size - n for key, n in have.items()})
