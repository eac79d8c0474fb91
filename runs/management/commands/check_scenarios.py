"""Check scenario files without storing anything."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evalhub.lib.numbers import format_count
from evalhub.teams.access import DEFAULT_PROJECT
from evalhub.teams.models import Project
from runs.db.disk import DiskFull
from runs.engine.proof_agents import ProofSetting
from runs.errors import ProviderError, RequestError
from runs.results.validations import ScenarioValidation
from runs.sandbox.worker_settings import containment, variables_of
from runs.suites.prove import ProvedScenario, proof_lines, prove, validations_json
from runs.targets.definitions import hints_of_file
from runs.targets.providers.prices import litellm_price
from scenarios.bundles import read_path, with_tool
from scenarios.commands import FAILED, WRONG_USE, EvalhubCommand, Refused, Result, add_tool_argument
from scenarios.formats import parse_files
from scenarios.formats.llm_tool_test.config_file import RATE_PROBLEM, known_rate_hints
from scenarios.formats.parsed import ParsedSuite, Problem, ScenarioFileError
from scenarios.guidance import Guidance, named_guidelines, skill_files, suite_guidance
from scenarios.models import Suite, SuiteVersion


def check_paths(
    paths: Iterable[Path], *, strict: bool = False, tool: str = ""
) -> tuple[list[Problem], list[ParsedSuite]]:
    """Return every problem and lint of files, folders and archives, sorted, and the suites of those without problems.

    `strict` is passed to `parse_files`; `tool` names the tool of skills.
    """
    problems: list[Problem] = []
    suites: list[ParsedSuite] = []
    for path in paths:
        try:
            parsed = _parse(path, strict=strict, tool=tool)
        except ScenarioFileError as error:
            problems += error.problems
        else:
            suites += parsed
            problems += [lint for suite in parsed for lint in suite.lints]
            problems += [problem for suite in parsed for problem in _problems_of_targets(suite)]
            if any("models" in suite.settings for suite in parsed):
                problems = _with_known_rates(path, problems)
    return sorted(dict.fromkeys(problems)), suites


def _problems_of_targets(suite: ParsedSuite) -> Iterator[Problem]:
    """Yield the problems and lints of a suite's targets file."""
    if not suite.targets_text:
        return
    try:
        yield from hints_of_file(suite.targets_text.encode(), suite.targets_file)
    except ScenarioFileError as error:
        yield from error.problems


def _with_known_rates(path: Path, problems: list[Problem]) -> list[Problem]:
    """Return the problems with hints by litellm's prices in place of those of the reader, which knows none."""
    known = known_rate_hints(read_path(path).files, _litellm_rate)
    places = {(hint.file, hint.where) for hint in known}
    return [
        each for each in problems if each.id != RATE_PROBLEM or (each.file, each.where) not in places
    ] + known


def _litellm_rate(model: str, direction: str) -> float | None:
    price = litellm_price(model)
    return getattr(price, f"{direction}_per_million") if price else None


def _parse(path: Path, *, strict: bool, tool: str) -> tuple[ParsedSuite, ...]:
    bundle = with_tool(read_path(path), tool) if tool else read_path(path)
    return parse_files(
        bundle.files,
        name=bundle.name,
        executables=bundle.executables,
        variables=frozenset(variables_of(Project(slug=DEFAULT_PROJECT))),
        strict=strict,
    )


def _prove(suites: Iterable[ParsedSuite]) -> dict[str, list[ScenarioValidation]]:
    """Return the seals of each suite. Raises `Refused` if proofs can't run here."""
    try:
        return {suite.name: list(prove_parsed(suite)) for suite in suites}
    except (RequestError, ProviderError, DiskFull) as error:
        raise Refused(str(error), id="proof/failed") from error


@dataclass(frozen=True)
class LaidIn:
    """What an agent with the skills of suites gets, and what stays out of their folders."""

    suites: tuple[str, ...]
    files: Guidance
    left_out: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """Return a line for each file with its size, and one for what is left out."""
        size = sum(len(file.content) for file in self.files)
        lines = [
            f"{', '.join(self.suites)}: An agent with the skill gets {format_count(len(self.files), 'file')}, {size:,} bytes."
        ]
        lines += [f"  {len(file.content):>11,}  {file.path}" for file in self.files]
        return [*lines, f"Left out: {', '.join(self.left_out)}."] if self.left_out else lines

    def as_json(self) -> dict[str, Any]:
        """Return paths with sizes in bytes, and what is left out."""
        files = [{"path": file.path, "bytes": len(file.content)} for file in self.files]
        return {"suites": list(self.suites), "files": files, "left_out": list(self.left_out)}


def laid_in(suites: Iterable[ParsedSuite]) -> list[LaidIn]:
    """Return what the skills of suites lay into workspaces; suites with the same skills are one entry."""
    names: dict[tuple[Guidance, tuple[str, ...]], list[str]] = {}
    for suite in suites:
        files = skill_files(suite_guidance(suite, named_guidelines(suite)))
        if files:
            names.setdefault((files, suite.left_out), []).append(suite.name)
    return [LaidIn(tuple(each), files, left_out) for (files, left_out), each in names.items()]


def _schema(name: str, paths: Sequence[str]) -> Result:
    """Return the JSON Schema of a format. Raises `Refused`."""
    # Imported here because the models of all formats are many.
    from runs.suites.file_schemas import FILE_SCHEMAS, schema_text

    if paths:
        raise Refused("--schema prints a schema and checks no files. Leave out one of them.")
    if name not in FILE_SCHEMAS:
        names = ", ".join(FILE_SCHEMAS)
        raise Refused(f"Unknown format '{name}'. Formats: {names}.", id="schema/unknown")
    text = schema_text(name).rstrip("\n")
    return Result(text, json.loads(text))


class Command(EvalhubCommand):
    help = "Parse and lint scenario files: every problem with file and line. Stores nothing."
    examples = (
        "my-suite/",
        "my-suite/ --strict",
        "bundle.zip --prove",
        "my-skill/ --tool gh",
        "--schema llm-tool-test",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", metavar="PATH", help="file, folder or bundle")
        parser.add_argument(
            "--schema",
            metavar="FORMAT",
            help="print the JSON Schema of a format, for editors, and check nothing",
        )
        parser.add_argument(
            "--strict",
            action="store_true",
            help="exit 1 if there are only hints, and reject eval cases as run_scenarios --strict does",
        )
        add_tool_argument(parser)
        parser.add_argument(
            "--prove",
            action="store_true",
            help="run each scenario without an agent, which must fail, and its solution "
            "(solutions/<key>.sh), which must pass; exit 1 if a scenario is not proved",
        )

    def work(self, options: dict[str, Any]) -> Result:
        if options["schema"] is not None:
            return _schema(options["schema"], options["paths"])
        if not options["paths"]:
            raise Refused("Name a file, a folder or a bundle to check, or a format with --schema.")
        paths = [Path(path) for path in options["paths"]]
        problems, suites = check_paths(paths, strict=options["strict"], tool=options["tool"] or "")
        self.annotate(problems, options["paths"])
        errors = [problem for problem in problems if not problem.lint]
        lints = len(problems) - len(errors)
        code = WRONG_USE if errors else (FAILED if lints and options["strict"] else 0)
        skills = laid_in(suites)
        lines = [*(line for skill in skills for line in skill.lines), *map(str, problems)]
        sums = f"{format_count(len(errors), 'problem')}, {format_count(lints, 'hint')}."
        lines.append(sums if problems else "No problems.")
        document: dict[str, Any] = {"problems": [problem.as_json() for problem in problems]}
        if skills:
            document["laid_in"] = [skill.as_json() for skill in skills]
        if options["prove"]:
            proofs = _prove(suites)
            document["proofs"] = {name: validations_json(validations) for name, validations in proofs.items()}
            for name, validations in proofs.items():
                lines += [name, *proof_lines(validations)]
            proved = all(seal.is_proved for validations in proofs.values() for seal in validations)
            code = code or (0 if proved else FAILED)
        return Result("\n".join(lines), document, code)


def prove_parsed(suite: ParsedSuite) -> Iterator[ScenarioValidation]:
    """Yield the seals of a parsed suite's scenarios, with the variables of the default project.

    Raises `RequestError` and `ProviderError` for a worker's wrong settings, and `DiskFull`.
    """
    project = Project(slug=DEFAULT_PROJECT)
    setting = ProofSetting(
        SuiteVersion(suite=Suite(project=project), config=dict(suite.settings)),
        containment(),
        variables_of(project),
        suite_guidance(suite, named_guidelines(suite)),
        frozenset(suite.fixtures),
    )
    for spec in suite.scenarios:
        files = suite.fixtures.get(spec.worker_fixture, ())
        yield prove(ProvedScenario(spec, partial(tuple, files), suite.solutions.get(spec.key)), setting)
