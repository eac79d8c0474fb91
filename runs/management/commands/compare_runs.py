"""Two runs side by side."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evaluators.comparability import named
from runs.models import Run
from runs.warehouse.comparison import comparison_between
from scenarios.commands import REGRESSED, EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = "Say which scenarios passed in run A and fail in run B, and the other way round. Exit 3 on regressions."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("a", type=int, metavar="A", help="the run to hold against, such as a baseline")
        parser.add_argument("b", type=int, metavar="B")

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
        words = {
            "regressions": "Regressed",
            "new_passes": "Passes now",
            "added": "Added",
            "removed": "Removed",
        }
        lines = [f"{word}: {', '.join(document[name])}" for name, word in words.items() if document[name]]
        if changed := named(changes.not_comparable):
            lines.append(changed)
        return Result(
            "\n".join(lines) or "Nothing changed.", document, REGRESSED if changes.regressions else 0
        )


def _run(pk: int) -> Run:
    # One by one: among several, SQLite takes no number that no run can have.
    found = Run.objects.filter(pk=pk).first()
    if found is None:
        raise Refused(f"There is no run {pk}. The runs page lists those there are.", id="run/unknown")
    return found
