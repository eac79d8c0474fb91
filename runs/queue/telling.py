"""What agents do while their trials run, written down for whoever looks at the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.queue import statements
from runs.queue.writing import write_transaction


@dataclass(frozen=True)
class Doing:
    """What is known of an agent's calls in a trial that is held by this token."""

    trial_id: int
    token: str
    last: str
    calls: int | None
    exit_code: int | None = None
    """Of the last one."""


def tell(calls: Sequence[Doing]) -> None:
    """Write down what agents do, where the tokens still stand."""
    with write_transaction():
        for each in calls:
            values = {"doing": each.last, "calls_so_far": each.calls, "doing_exit": each.exit_code}
            statements.write_trial(each.trial_id, each.token, values)
