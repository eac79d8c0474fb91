"""`compare_runs`: compare two runs."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evaluators.comparability import named
from runs.models import Run
from runs.warehouse.comparison import comparison_between
from scenarios.commands import REGRESSED, EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = (
        "List scenarios that passed in run A and fail in run B, and vice versa. Exits with 3 on regressions."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("a", type=int, metavar="A", help="the earlier run, such as a baseline")
        parser.add_argument("b", type=int, metavar="B", help="the later run")

    def work(self, options: dict[str, Any]) -> Result:
        a, b = options["a"], options["b"]
        changes = comparison_between(_run(a), _run(b))
        document = {
            "before": a,
            "after": b,
            "regressions": list(changes.regressions),
            "new_passes": list(changes.new_passes),
            "added": list(changes.added),
            "removed": list(changes.removed),
            "not_comparable": {key: list(why) for key, why in changes.not_comparable.items()},
        }
        labels = {
            "regressions": "Regressed",
            "new_passes": "New passes",
            "added": "Added",
            "removed": "Removed",
        }
        lines = [f"{label}: {', '.join(document[name])}" for name, label in labels.items() if document[name]]
        if changed := named(changes.not_comparable):
            lines.append(changed)
        return Result(
            "\n".join(lines) or "Nothing changed.", document, REGRESSED if changes.regressions else 0
        )


def _run(pk: int) -> Run:
    # One query a run: with several numbers in one, SQLite fails on those beyond 64 bits.
    run = Run.objects.filter(pk=pk).first()
    if run is None:
        raise Refused(f"There is no run {pk}. The runs page lists all runs.", id="run/unknown")
    return run
