"""Check scenario files without storing anything."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evalhub.web.numbers import counted
from scenarios.bundles import read_path
from scenarios.commands import FAILED, WRONG_USE, EvalhubCommand, Result
from scenarios.formats import parse_files
from scenarios.formats.problems import Problem, ScenarioFileError


def check_paths(paths: Iterable[Path], *, command_pattern: str = "", strict: bool = False) -> list[Problem]:
    """Return every problem and lint of files, folders and archives, sorted.

    `strict` is passed to `parse_files`.
    """
    problems: list[Problem] = []
    for path in paths:
        problems += _check(path, command_pattern, strict=strict)
    return sorted(dict.fromkeys(problems))


def _check(path: Path, command_pattern: str, *, strict: bool) -> tuple[Problem, ...]:
    try:
        bundle = read_path(path)
        suites = parse_files(
            bundle.files,
            name=bundle.name,
            command_pattern=command_pattern,
            executables=bundle.executables,
            strict=strict,
        )
    except ScenarioFileError as error:
        return error.problems
    return tuple(lint for suite in suites for lint in suite.lints)


class Command(EvalhubCommand):
    help = "Parse and lint scenario files: every problem with file and line. Stores nothing."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or bundle")
        parser.add_argument(
            "--strict",
            action="store_true",
            help="exit 1 if there are only hints, and reject eval cases as run_scenarios --strict does",
        )

    def work(self, options: dict[str, Any]) -> Result:
        problems = check_paths([Path(path) for path in options["paths"]], strict=options["strict"])
        errors = [problem for problem in problems if not problem.lint]
        lints = len(problems) - len(errors)
        code = WRONG_USE if errors else (FAILED if lints and options["strict"] else 0)
        lines = [str(problem) for problem in problems]
        sums = f"{counted(len(errors), 'problem')}, {counted(lints, 'hint')}."
        lines.append(sums if problems else "No problems.")
        document = {"problems": [problem.as_json() for problem in problems]}
        return Result("\n".join(lines), document, code)
