"""Files looked at, nothing stored."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evalhub.web.numbers import counted
from scenarios.checking import check_paths
from scenarios.commands import FAILED, WRONG_USE, EvalhubCommand, Result


class Command(EvalhubCommand):
    help = "Parse and lint scenario files: every problem with file and line. Stores nothing."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or bundle")
        parser.add_argument(
            "--strict",
            action="store_true",
            help="exit 1 when there are hints only, and refuse eval cases as --strict of a run does",
        )

    def work(self, options: dict[str, Any]) -> Result:
        problems = check_paths([Path(path) for path in options["paths"]], strict=options["strict"])
        errors = [problem for problem in problems if not problem.lint]
        lints = len(problems) - len(errors)
        code = WRONG_USE if errors else (FAILED if lints and options["strict"] else 0)
        lines = [str(problem) for problem in problems]
        sums = f"{counted(len(errors), 'problem')}, {counted(lints, 'hint')}."
        lines.append(sums if problems else "Nothing to complain about.")
        document = {"problems": [problem.as_json() for problem in problems]}
        return Result("\n".join(lines), document, code)
