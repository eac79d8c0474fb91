"""Eval files of tool-forge in few words."""

from __future__ import annotations

import json
from typing import Any

from scenarios.formats import parse_files
from scenarios.formats.parsed import ParsedSuite, Problem, ScenarioFileError
from scenarios.spec import ScenarioSpec

FILE = "get_weather.labeled.json"

PARAM = {"tool": "t", "paramName": "p", "assertion": "equals", "value": "x"}


def case(id: str = "a", message: str = "Weather in Paris?", **more: Any) -> dict[str, Any]:
    more.setdefault("expect", {"responseNonEmpty": True})
    return {"id": id, "input": {"message": message}, **{k: v for k, v in more.items() if v is not ...}}


def parse(value: Any, *, file: str = FILE, strict: bool = False, **files: Any) -> ParsedSuite:
    """Parse one eval file, with other files beside it."""
    written = {path: json.dumps(other).encode() for path, other in {file: value, **files}.items()}
    (suite,) = parse_files(written, name="suite", strict=strict)
    return suite


def spec(expect: Any = ..., **more: Any) -> ScenarioSpec:
    """The scenario of a case with this `expect`."""
    return parse([case(expect=expect, **more)]).scenarios[0]


def lints(expect: Any = ..., *, file: str = FILE, **more: Any) -> list[str]:
    """What is linted in a case with this `expect`, as `where id`."""
    suite = parse([case(expect=expect, **more)], file=file)
    return [f"{lint.where.removeprefix('[0]').removeprefix('.')} {lint.id}" for lint in suite.lints]


def refusals(text: str, *, file: str = FILE, strict: bool = False) -> list[Problem]:
    """The problems for which a file is refused."""
    try:
        parse_files({file: text.encode()}, name="suite", strict=strict)
    except ScenarioFileError as error:
        return [problem for problem in error.problems if not problem.lint]
    return []
