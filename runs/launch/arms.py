"""The arms of a launch with several versions of guidance: which is compared with which, and which decides."""

from __future__ import annotations

from collections.abc import Iterable

from runs.models import Run
from runs.models.run import Arm
from runs.models.run_options import RunOptions


def link_arms(runs: Iterable[Run], *, until_decided: bool) -> None:
    """Have each later arm of a new launch compared with the first one, in the order in which they were asked for.

    Until a verdict, the first two are looked at together, and a third one, of a lift, follows them.
    """
    for old, *others in _arms(runs):
        for place, new in enumerate(others):
            if until_decided and place:
                _save(new, arm=Arm.PREVIOUS, reference=old)
            else:
                _save(new, arm=Arm.NEW, reference=old, options={**new.options, "baseline": str(old.pk)})
        if others:
            _save(old, arm=Arm.REFERENCE)


def plan_retests(runs: Iterable[Run]) -> None:
    """Have several versions of guidance run broken scenarios again in turn, or not at all.

    They do where the command fails for a regression, each later one against the first one named. Without that they
    are a comparison, in which nothing broke.
    """
    for arms in _arms(runs):
        if len(arms) < 2:
            continue
        is_test = all(RunOptions.model_validate(run.options).fail_on_regression for run in arms)
        planned: dict[str, object] = (
            {"retest_arms": [run.pk for run in arms]} if is_test else {"retest": False}
        )
        for run in arms:
            _save(run, options={**run.options, **planned})


def deciding_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that decide a launch's headline, outputs and exit code: the last arm, of a lift the skill's."""
    return [arms[-1] for arms in _arms(run for run in runs if run.arm != Arm.PREVIOUS)]


def _arms(runs: Iterable[Run]) -> Iterable[list[Run]]:
    """Return the runs that differ in nothing but their guidance together, in the order of the launch."""
    arms: dict[tuple[int, int, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.pk):
        arms.setdefault((run.suite_version_id, run.target_id, run.model), []).append(run)
    return arms.values()


def _save(run: Run, **values: object) -> None:
    for name, value in values.items():
        setattr(run, name, value)
    run.save(update_fields=list(values))
