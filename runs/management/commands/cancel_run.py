"""`cancel_run`: cancel an open run."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from evalhub.lib.numbers import format_count
from evalhub.teams import audit
from runs.engine.recording import cancel_run
from runs.models import Run
from runs.results.find_run import find_run_or_refuse
from scenarios.commands import EvalhubCommand, Refused, Result, acting_user

POLL_SECONDS = 0.5


class Command(EvalhubCommand):
    help = (
        "Cancel an open run: queued trials at once, running agents within seconds. Finished trials are kept."
    )
    examples = ("12",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="RUN", help="number of the run")

    def work(self, options: dict[str, Any]) -> Result:
        run = find_run_or_refuse(options["id"], "project")
        if not cancel_run(run.pk):
            raise Refused(f"Run {run.pk} has already finished.", id="run/over")
        audit.append_event(run.project, acting_user(), "run.cancel", run)
        # The lease of a process that was killed has to end first.
        end = time.monotonic() + settings.LEASE_SECONDS + 10 * POLL_SECONDS
        while _is_open(run) and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            cancel_run(run.pk)
        run.refresh_from_db()
        document = {"run": run.pk, "state": run.state, "cancelled": run.cancelled}
        if run.is_open:
            return Result(f"run {run.pk} is being cancelled.", document)
        return Result(f"run {run.pk}: {format_count(run.cancelled, 'trial')} cancelled.", document)


def _is_open(run: Run) -> bool:
    run.refresh_from_db(fields=["state"])
    return run.is_open
