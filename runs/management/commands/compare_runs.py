"""Two runs side by side."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evaluators.suite_result import compare_passes
from runs.comparing import passes
from runs.models import Run
from scenarios.commands import REGRESSED, EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = "Say which scenarios passed in run A and fail in run B, and the other way round. Exit 3 on regressions."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("a", type=int, metavar="A", help="the run to hold against, such as a baseline")
        parser.add_argument("b", type=int, metavar="B")

    def work(self, options: dict[str, Any]) -> Result:
        a, b = options["a"], options["b"]
        # One by one: among several, SQLite takes no number that no run can have.
        missing = [each for each in (a, b) if not Run.objects.filter(pk=each).exists()]
        if missing:
            raise Refused(
                f"There is no run {missing[0]}. The runs page lists those there are.", id="run/unknown"
            )
        changes = compare_passes(passes(a), passes(b))
        document = {
            "before": a,
            "after": b,
            "regressions": list(changes.regressions),
            "new_passes": list(changes.new_passes),
            "added": list(changes.added),
            "removed": list(changes.removed),
        }
        words = {
            "regressions": "Regressed",
            "new_passes": "Passes now",
            "added": "Added",
            "removed": "Removed",
        }
        lines = [f"{word}: {', '.join(document[name])}" for name, word in words.items() if document[name]]
        return Result(
            "\n".join(lines) or "Nothing changed.", document, REGRESSED if changes.regressions else 0
        )
