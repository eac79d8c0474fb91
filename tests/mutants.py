"""Plant faults, and see which tests find them: `python -m tests.mutants [package…] [--number N] [--seed S]`.

A mutant is one changed place of a package, of static/js or of templates, chosen by the seed in a copy of the last
commit. Each is judged by the ordinary tests of its room with `-x`. Survivors are tried with the room's tests marked
`slow`; what only these find is tried with `make test`. A mutant that only slow tests find is *lost*: move its test back.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.all import ROOT, find_tests

PACKAGES = ("evaluators", "scenarios", "runs", "evalhub", "static/js", "templates")
NUMBER = 12
"""Mutants of each package."""
LEFT_OUT = re.compile(r"/migrations/|/examples/|/vendor/|/management/")
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
SWAPS = [("===", "!=="), ("!==", "==="), ("&&", "||"), ("true", "false"), ("false", "true"), (" + 1", " - 1")]
"""What a line of JavaScript may lose."""


@dataclass(frozen=True)
class Mutant:
    """One changed place: the file, its line, and the file's text with the change."""

    path: str
    line: int
    change: str
    text: str


def find_python_mutants(path: str, source: str) -> list[Mutant]:
    """Return the mutants of a module: other comparisons, negated conditions, `and` for `or`, empty results."""
    found = []
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()

    def place(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def add(node: ast.expr, new: str) -> None:
        start, end = place(node)
        text = (raw[:start] + new.encode() + raw[end:]).decode()
        old = raw[start:end].decode()
        found.append(Mutant(path, node.lineno, f"{old}  →  {new}", text))

    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
                add(node, f"({left} {COMPARISONS[type(node.ops[0])]} {right})")
            elif isinstance(node, ast.BoolOp):
                word = " and " if isinstance(node.op, ast.Or) else " or "
                add(node, f"({word.join(f'({ast.unparse(each)})' for each in node.values)})")
            elif isinstance(node, ast.If | ast.IfExp | ast.While):
                add(node.test, f"(not ({ast.unparse(node.test)}))")
            elif isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
                add(node.value, "None")
    return found


def find_script_mutants(path: str, source: str) -> list[Mutant]:
    """Return the mutants of a script: each swap at each place outside comments."""
    found = []
    lines = source.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("//", "*", "/*")):
            continue
        for old, new in SWAPS:
            if old in line:
                changed = line.replace(old, new, 1)
                text = "".join([*lines[:number], changed, *lines[number + 1 :]])
                found.append(Mutant(path, number + 1, f"{line.strip()}  →  {changed.strip()}", text))
    return found


def find_template_mutants(path: str, source: str) -> list[Mutant]:
    """Return the mutants of a template: negated conditions, and texts that aren't shown."""
    found = []
    for match in re.finditer(r"\{% (?:el)?if (.+?) %\}|\{\{ .+? \}\}", source):
        new = "" if match[1] is None else match[0].replace(match[1], f"not ({match[1]})")
        text = source[: match.start()] + new + source[match.end() :]
        line = source.count("\n", 0, match.start()) + 1
        found.append(Mutant(path, line, f"{match[0]}  →  {new or 'nothing'}", text))
    return found


FINDERS = {".py": find_python_mutants, ".js": find_script_mutants, ".html": find_template_mutants}


def choose_mutants(root: Path, package: str, number: int, seed: str) -> list[Mutant]:
    """Return the mutants of a tree's package, each of another file, always the same for a seed and a tree."""
    draw = random.Random(f"{seed} {package}")
    paths = [
        path.relative_to(root).as_posix()
        for path in sorted((root / package).rglob("*"))
        if path.suffix in FINDERS and not LEFT_OUT.search(path.as_posix())
    ]
    draw.shuffle(paths)
    chosen: list[Mutant] = []
    for path in paths:
        mutants = FINDERS[Path(path).suffix](path, (root / path).read_text(encoding="utf-8"))
        if mutants and len(chosen) < number:
            chosen.append(draw.choice(mutants))
    return chosen


def run_tests(copy: Path, arguments: list[str]) -> bool:
    """Return whether the tests pass in the copy."""
    argv = [sys.executable, "-m", "tests.all", "-x", "-q", *arguments]
    return subprocess.run(argv, cwd=copy, capture_output=True, check=False).returncode in (0, 5)


def judge(mutant: Mutant, copy: Path) -> str:
    """Return who finds a mutant: the room, make test, slow tests alone (*lost*); one that its room misses has *survived*."""
    room = find_tests(mutant.path)
    path = copy / mutant.path
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.text, encoding="utf-8")
    try:
        if not run_tests(copy, room):
            return "room"
        if run_tests(copy, [*room, "-m", "slow and not (fault or simulation or agents)"]):
            return "survived"
        return "lost" if run_tests(copy, []) else "make test"
    finally:
        path.write_text(original, encoding="utf-8")


def judge_all(packages: list[str], number: int, seed: str) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with who finds it."""
    with tempfile.TemporaryDirectory(prefix="evalhub-mutants-") as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(copy)], check=True)
        for package in packages:
            for mutant in choose_mutants(copy, package, number, seed):
                yield mutant, judge(mutant, copy)


def main() -> int:
    """Print a line for each mutant and a count; return 1 where one is lost."""
    parser = argparse.ArgumentParser(description="Plant faults, and see which tests find them.")
    parser.add_argument("packages", nargs="*", default=PACKAGES, help=", ".join(PACKAGES))
    parser.add_argument("--number", type=int, default=NUMBER, help="mutants of each package")
    parser.add_argument("--seed", default="1")
    given = parser.parse_args()
    found: list[str] = []
    began = time.monotonic()
    for mutant, by in judge_all(given.packages, given.number, given.seed):
        found.append(by)
        seconds = time.monotonic() - began
        print(
            f"{seconds:6.0f} s  {by:9}  {mutant.path}:{mutant.line}: {' '.join(mutant.change.split())[:150]}",
            flush=True,
        )
    print(", ".join(f"{found.count(by)} {by}" for by in ("room", "make test", "lost", "survived")))
    return int("lost" in found)


if __name__ == "__main__":
    sys.exit(main())
