"""What the modules of the source import, read from their text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules(*parts: str) -> Iterator[Path]:
    for part in parts:
        path = ROOT / part
        yield from [path] if path.suffix else sorted(path.rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give line and full dotted name of everything that is imported, also within functions."""
    for node in ast.walk(tree):
        yield from imports_of(node)


def imports_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Give line and full dotted name of what one statement imports."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield node.lineno, alias.name
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            yield node.lineno, f"{node.module}.{alias.name}"


def loading(tree: ast.AST) -> Iterator[ast.AST]:
    """Give the parts of a module but the bodies of functions: what is loaded with it, or is there for its types."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from loading(child)


def neighbours(trees: Mapping[str, ast.AST], *, in_functions: bool = False) -> dict[str, set[str]]:
    """Return for each module those of the others that it imports, by default outside of functions."""
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        nodes = ast.walk(tree) if in_functions else loading(tree)
        wanted = [each for node in nodes for _, each in imports_of(node)]
        # What is imported is a module, or a name in one.
        modules = (each if each in trees else each.rpartition(".")[0] for each in wanted)
        found[name] = {module for module in modules if module in trees}
    return found


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of a circle in their order, nothing where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        modules: list[str] = error.args[1]
        return modules
    return []


def module_name(path: Path) -> str:
    """Return the name by which a module is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def read(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))
