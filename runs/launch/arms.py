"""The arms of a launch with several versions of guidance: which is compared with which, and which decides."""

from __future__ import annotations

from collections.abc import Iterable

from runs.models import Run
from runs.models.run_options import RunOptions


def link_arms(runs: Iterable[Run], *, until_decided: bool) -> None:
    """Have each later arm of a new launch compared with the first one, in the order in which they were asked for.

    Until a verdict, the first two are looked at together, and a third one, of a lift, follows them.
    """
    for old, *others in _arms(runs):
        if until_decided and others:
            new, *previous = others
            pair(old, new)
            for follower in previous:
                _set(follower, looks_with=new.pk, is_previous_arm=True)
        elif others:
            _set(old, is_old_side=True)
            for new in others:
                _set(new, baseline=str(old.pk))


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
            _set(run, **planned)


def pair(old: Run, new: Run) -> None:
    """Have two open runs looked at together, the new one compared with the old one."""
    _set(old, looks_with=new.pk, is_old_side=True)
    _set(new, looks_with=old.pk, baseline=str(old.pk))


def deciding_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that decide a launch's headline, outputs and exit code: the last arm, of a lift the skill's."""
    counts = [run for run in runs if not RunOptions.model_validate(run.options).is_previous_arm]
    return [arms[-1] for arms in _arms(counts)]


def _arms(runs: Iterable[Run]) -> Iterable[list[Run]]:
    """Return the runs that differ in nothing but their guidance together, in the order of the launch."""
    arms: dict[tuple[int, int, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.pk):
        arms.setdefault((run.suite_version_id, run.target_id, run.model), []).append(run)
    return arms.values()


def _set(run: Run, **options: object) -> None:
    run.options = {**run.options, **options}
    run.save(update_fields=["options"])
