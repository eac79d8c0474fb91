"""Write docs/conformance.md: each paragraph of the three specifications with the tests that are marked with it.

`python -m tests.conformance_page` writes the page; a test checks that it is up to date. A test says what it tests with
`@pytest.mark.spec("agentv", "Backoff by default")`, a module with the same mark in `pytestmark`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.specifications import MISSING, PARAGRAPHS, TITLES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "conformance.md"
HEAD = """# Conformance

evalhub implements three specifications. This page lists their paragraphs, in our own words, with the tests that check
them. `python -m tests.conformance_page` writes it from marks on the tests (`@pytest.mark.spec`) and
`tests/specifications.py`.
"""

Paragraph = tuple[str, str]
"""A specification and the title of one of its paragraphs."""


@cache
def marked_tests() -> dict[Paragraph, list[str]]:
    """Return the tests of each marked paragraph, as `file::name`, or the file alone where its whole module is marked."""
    found: dict[Paragraph, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for paragraph, name in _marks(ast.parse(path.read_text()).body):
            found[paragraph].append(path.relative_to(ROOT).as_posix() + (f"::{name}" if name else ""))
    return dict(found)


def _marks(body: list[ast.stmt], within: str = "") -> Iterator[tuple[Paragraph, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = within + node.name
            yield from ((each, name) for mark in node.decorator_list for each in _paragraphs(mark))
            if isinstance(node, ast.ClassDef):
                yield from _marks(node.body, f"{name}::")
        elif isinstance(node, ast.Assign) and "pytestmark" in map(ast.unparse, node.targets):
            marks = node.value.elts if isinstance(node.value, ast.List) else [node.value]
            yield from ((each, within.removesuffix("::")) for mark in marks for each in _paragraphs(mark))


def _paragraphs(mark: ast.expr) -> Iterator[Paragraph]:
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.spec":
        spec, title = map(ast.literal_eval, mark.args)
        yield spec, title


def page() -> str:
    """Return the page's text."""
    tests = marked_tests()
    lines = [HEAD]
    for spec, sections in PARAGRAPHS.items():
        lines += [f"## {TITLES[spec]}", ""]
        for section, titles in sections.items():
            lines += [f"| {section} | |", "| --- | --- |"]
            lines += [
                f"| {title} | {_cell(tests.get((spec, title), []), (spec, title))} |" for title in titles
            ]
            lines += [""]
    return "\n".join(lines)


def _cell(tests: list[str], paragraph: Paragraph) -> str:
    if not tests:
        return MISSING[paragraph]
    return ", ".join(map(_link, tests))


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    shown = name.rpartition("::")[2].removeprefix("test_").replace("_", " ") or f"all of {Path(file).name}"
    return f"[{shown}](../{file})"


if __name__ == "__main__":
    PAGE.write_text(page())
