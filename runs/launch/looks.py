"""Plan the looks of runs until a verdict: how many trials they begin with, and how many versions they compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evalhub.lib.numbers import counted
from evaluators.statistics.looks import first_size
from runs.errors import RequestError
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
    """Raise `RequestError` if a request compares versions of a suite's guidance with something else, or too many.

    Until a verdict it compares two; a lift has its third arm beside them.
    """
    arms = max(Counter(each.suite_id for each in guidance).values(), default=0)
    if options.baseline and arms > 1:
        raise RequestError(
            "Several versions of guidance are compared with the first of them. Leave out the baseline, or choose one version."
        )
    if options.until_decided and arms > (3 if options.lift else 2):
        raise RequestError("A run until a verdict compares two versions of guidance. Choose two.")
