"""Count the limits of what comes from outside: `python -m tests.limits` lists them.

A limit is a numeric constant, class attribute or default whose name says most, longest, largest, deepest, maximum or
limit. Left out are, by the kinds below, what bounds something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("evalhub", "runs", "scenarios", "evaluators")
MOST = 120
NAME = re.compile(
    r"^_?(?:MAX|MOST|LONGEST|DEEPEST|LARGEST|WIDEST|LIMIT|SHORTEST|GREATEST|HIGHEST)"
    r"|_(?:MAX|LIMITS?|BYTES|KB|MB)$|^(?:max|most|longest)_|LIMIT|MANY"
)
ROOMS = {
    "what a page, a message or an export shows": r"_page/|/web/(?!rest|middleware)|exports/|notifications/(?!channels)"
    r"|compare/|scenarios/(?:annotations|quoting|text_difference)|/review/(?!overruling)"
    r"|results/(?:drafts|filter_choices|search/views|files/kept_workspace)",
    "how far evalhub's own computation goes": r"evaluators/statistics/",
    "a program that evalhub brings": r"scenarios/examples/|management/",
}
NAMES = {
    "what a page, a message or an export shows": r"SHOWN|NAMED|QUOTED?S?$|LISTED|MESSAGES|LEFT_OUT|_ERRORS|WARNINGS"
    r"|RUNNING|LOST$|STATEMENTS|DRAFTS|CHOICES|GUIDANCE|LONGEST_VARS|LONGEST_SCRIPT_OUTPUT|PLACES|ENTRIES|OF_FOLDER",
    "how many stored rows are read": r"_RUNS$|_READ$|CANDIDATES|TABLES|MOST_TRIALS$|^MOST$",
    "how long, how often or how much at once evalhub works": r"PAUSE|WAIT|AT_ONCE|FOLLOWED|WOKEN|FREE$|STARTS|REQUEUES"
    r"|RETRIES|REMOVED|DELAY|max_age|CLOCK|PROBE",
    "a length that something has": r"HEX_BYTES|SHORTEST|_MB$|SOCKET_PATH|_POINT_LIMIT|_ZERO_LIMIT|MANY|LARGEST_KEY|PORT",
}
COUNTED = re.compile(
    r"signing.py:LONGEST|guidance_page/versions.py:DEEPEST|failing_calls.py:LARGEST|forms.py:MOST_REFERENCES"
    r"|statement_groups.py:(?:MOST_TEXTS|LONGEST)|pattern.py:LONGEST|safe_walk.py:MOST_ENTRIES|text_difference.py:MOST_[LP]"
    r"|suite_page/forms.py:MOST_TRIALS|workspace_changes.py:MOST_TEXT|side_by_side.py:MOST_COMPARED"
)
"""Limits of input in modules, or with names, whose other numbers are none."""


def is_number(value: ast.expr | None) -> bool:
    """Return whether an expression is a number, such as `64 << 20`."""
    if value is None or any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(value)):
        return False
    found = eval(compile(ast.Expression(value), "", "eval"), {})
    return isinstance(found, int | float) and not isinstance(found, bool)


def numbers_in(tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module's numeric constants, class attributes and defaults of arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = (
                    zip(target.elts, node.value.elts, strict=True)
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    else [(target, node.value)]
                )
                yield from (
                    name.id for name, value in pairs if isinstance(name, ast.Name) and is_number(value)
                )
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_number(node.value):
            yield node.target.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            defaults = zip(
                reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False
            )
            every = [*defaults, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
            yield from (argument.arg for argument, value in every if is_number(value))


def is_limit(place: str, name: str) -> bool:
    """Return whether a number in this file, with the name of a limit, bounds what comes from outside."""
    if COUNTED.search(f"{place}:{name}"):
        return True
    of_something_else = any(re.search(room, place) for room in ROOMS.values())
    return not of_something_else and not any(re.search(kind, name) for kind in NAMES.values())


def find_limits() -> list[str]:
    """Return the limits of what comes from outside, as `path:NAME`."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if "/migrations/" not in place:
                names = [name for name in numbers_in(ast.parse(path.read_text())) if NAME.search(name)]
                found += [f"{place}:{name}" for name in names if is_limit(place, name)]
    return found


if __name__ == "__main__":
    print(*find_limits(), sep="\n")
