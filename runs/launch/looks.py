"""Plan the looks of runs until a verdict: how many trials they begin with, and which runs are looked at together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from evalhub.lib.numbers import counted
from evaluators.statistics.looks import first_size
from runs.errors import RequestError
from runs.models import Run
from runs.models.run_options import RunOptions
from scenarios.models import Guidance

USUAL_MOST = 12
"""The most trials of each scenario where nothing else is asked for, at least four times those of the first look."""


def with_looks(options: RunOptions) -> RunOptions:
    """Return the options with the first look's and the most trials of a run until a verdict. Raises `RequestError`.

    A single trial, which is every request's default, means a quarter of the most.
    """
    if not options.until_decided:
        if options.max_trials is not None:
            raise RequestError(
                "--max-trials (max_trials) limits a run until a verdict. Add --until-decided (until_decided)."
            )
        return options
    if options.use_cache:
        raise RequestError(
            "The cache can't be used until a verdict, because trials have to be independent. Leave the cache out."
        )
    if options.shard:
        raise RequestError(
            "A shard has no verdict before all parts are merged. Run the shards without --until-decided."
        )
    most = options.max_trials or max(USUAL_MOST, 4 * options.trials)
    first = options.trials if options.trials > 1 else first_size(most)
    if first > most:
        raise RequestError(
            f"The first look takes {counted(first, 'trial')} of each scenario, and the most are {most}. Ask for fewer"
            " trials, or raise the most."
        )
    return options.model_copy(update={"trials": first, "max_trials": min(most, 1000)})


def check_sides(options: RunOptions, guidance: Sequence[Guidance]) -> None:
    """Raise `RequestError` if a request until a verdict compares more than two versions of a suite's guidance.

    A lift has its third arm beside them.
    """
    of_suites = Counter(each.suite_id for each in guidance)
    most = 3 if options.lift else 2
    if options.until_decided and max(of_suites.values(), default=0) > most:
        raise RequestError("A run until a verdict compares two versions of guidance. Choose two.")


def pair_guidance(runs: Iterable[Run]) -> None:
    """Have both runs of each A/B of guidance looked at together, on the same suite version, target and model.

    The old side is the one with the adopted guidance, else the one named first. A third run, of a lift, follows them.
    """
    for group in _arms(runs):
        if len(group) > 1:
            old, new, *previous = sorted(group, key=lambda run: (run.is_experiment, run.pk))
            pair(old, new)
            for follower in previous:
                _follow(follower, new)


def plan_retests(runs: Iterable[Run]) -> None:
    """Have several versions of guidance run broken scenarios again in turn, or not at all.

    They do where the command fails for a regression, each later one against the first one named. Without that they
    are a comparison, in which nothing broke.
    """
    for group in _arms(runs):
        if len(group) < 2:
            continue
        is_test = all(RunOptions.model_validate(run.options).fail_on_regression for run in group)
        keys = sorted(run.pk for run in group)
        for run in group:
            run.options = {**run.options, **({"retest_arms": keys} if is_test else {"retest": False})}
            run.save(update_fields=["options"])


def _arms(runs: Iterable[Run]) -> list[list[Run]]:
    """Return the runs of each suite version, target and model, which differ in their guidance."""
    arms: dict[tuple[int, int, str], list[Run]] = {}
    for run in runs:
        arms.setdefault((run.suite_version_id, run.target_id, run.model), []).append(run)
    return list(arms.values())


def pair(old: Run, new: Run) -> None:
    """Have two open runs looked at together, the new one compared with the old one."""
    old.options = {**old.options, "looks_with": new.pk, "is_old_side": True}
    new.options = {**new.options, "looks_with": old.pk, "baseline": str(old.pk)}
    for run in (old, new):
        run.save(update_fields=["options"])


def _follow(run: Run, new: Run) -> None:
    """Have an open run get the trials of the looks at another one, without being looked at."""
    run.options = {**run.options, "looks_with": new.pk, "is_previous_arm": True}
    run.save(update_fields=["options"])
