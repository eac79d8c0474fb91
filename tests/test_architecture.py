"""Holds the direction of the packages (docs: the house page)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ORDER = ("evaluators", "scenarios", "runs", "evalhub")
"""From the bottom to the top: a package imports only from those before it."""
LEAVES = ("evalhub.web", "evalhub.teams")
"""Parts of evalhub that scenarios and runs may import, and that import neither."""
ROOMS = (
    "errors",
    "labels",
    "model_server",
    "containment",
    "providers",
    "models",
    "outbox",
    "worker_settings",
    "worker_checks",
    "queue",
    "targets",
    "sources",
    "warehouse",
    "notifications",
    "charts",
    "reports",
    "planning",
    "execution",
    "demo_data",
    "pages",
    "api",
    "tasks",
    "management",
    "urls",
    "apps",
)
"""Folders and modules of runs: each imports only from those before it."""
PURE = ("evaluators", "scenarios/formats", "scenarios/spec.py")
IMPURE_MODULES = ("django", "celery", "litellm", "subprocess", "socket", "httpx")
IMPURE_NAMES = (
    "os.environ",
    "os.getenv",
    "time.time",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
)


def modules(*parts: str) -> Iterator[Path]:
    for part in parts:
        path = ROOT / part
        yield from [path] if path.suffix else sorted(path.rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give line and full dotted name of everything that is imported, also within functions."""
    for node in ast.walk(tree):
        yield from imported(node)


def imported(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Give line and full dotted name of what one statement imports."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield node.lineno, alias.name
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            yield node.lineno, f"{node.module}.{alias.name}"


def uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give line and dotted name of what is looked up by a name that may be one of `IMPURE_NAMES`."""
    last = {name.rpartition(".")[2] for name in IMPURE_NAMES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in last:
            yield node.lineno, ast.unparse(node)


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def upward(package: str, tree: ast.AST) -> list[str]:
    """Return the imports of a package's module that lead upwards."""
    above = ORDER[ORDER.index(package) + 1 :]
    allowed = () if package == "evaluators" else LEAVES
    return [
        f"{line}: {name}"
        for line, name in imports(tree)
        if within(name, *above) and not within(name, *allowed)
    ]


def impure(tree: ast.AST) -> list[str]:
    """Return the imports and names of a module that reach the world."""
    found = [
        (line, name) for line, name in imports(tree) if within(name, *IMPURE_MODULES) or name in IMPURE_NAMES
    ]
    found += [(line, name) for line, name in uses(tree) if name.endswith(IMPURE_NAMES)]
    return [f"{line}: {name}" for line, name in found]


def loading(tree: ast.AST) -> Iterator[ast.AST]:
    """Give the parts of a module but the bodies of functions: what is loaded with it, or is there for its types."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from loading(child)


def neighbours(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Return for each module those of the others that it imports outside of functions."""
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        wanted = [each for node in loading(tree) for _, each in imported(node)]
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


def rooms(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return which of the others each folder of a package imports from, and each module on its top."""
    found: dict[str, set[str]] = {}
    for name, others in graph.items():
        found.setdefault(room(name), set()).update(room(other) for other in others)
    return {name: others - {name} for name, others in found.items()}


def wrong_way(found: Mapping[str, set[str]]) -> list[str]:
    """Return the imports of a room that is not below."""
    place = {f"runs.{name}": number for number, name in enumerate(ROOMS)}
    return [
        f"{name} imports {other}"
        for name, others in sorted(found.items())
        for other in sorted(others)
        if name in place and place[other] >= place[name]
    ]


def room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def dotted(path: Path) -> str:
    """Return the name by which a module is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def read(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", ORDER[:-1])
def test_nothing_imports_upwards(package: str) -> None:
    found = {str(path.relative_to(ROOT)): upward(package, read(path)) for path in modules(package)}
    assert found
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_no_private_module_of_a_library_is_imported() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules(*ORDER, "tests", "manage.py")
        for line, name in imports(read(path))
        if any(part.startswith("_") and not part.startswith("__") for part in name.split("."))
        and not within(name, *ORDER, "tests")
    ]
    assert found == []


def test_private_access_has_three_exceptions_at_most() -> None:
    settings = (ROOT / "pyproject.toml").read_text().partition("per-file-ignores]")[2]
    lines = [text for path in modules(*ORDER, "tests") for text in path.read_text().splitlines()]
    excepted = [text for text in lines if "noqa: SLF" + "001" in text]
    assert len(excepted) + settings.count('"SLF"') <= 3


def test_leaves_import_neither_scenarios_nor_runs() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules(*(leaf.replace(".", "/") for leaf in LEAVES))
        for line, name in imports(read(path))
        if within(name, "scenarios", "runs")
    ]
    assert found == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not for their types alone."""
    graph = neighbours({dotted(path): read(path) for path in modules(*ORDER)})
    assert {name.partition(".")[0] for name in graph} == set(ORDER)
    assert circle(graph) == []


def test_rooms_of_runs_import_only_from_rooms_below_them() -> None:
    found = rooms(neighbours({dotted(path): read(path) for path in modules("runs")}))
    assert wrong_way(found) == []


def test_rooms_are_in_the_order_of_the_architecture_page() -> None:
    section = (ROOT / "docs/architecture.md").read_text().split("## Inside `runs`")[1].split("\n## ")[0]
    named = re.findall(
        r"`runs/(\w+)(?:/|\.py)`", "\n".join(re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE))
    )
    assert [name for name in named if name != "migrations"] == [
        name for name in ROOMS if name not in ("worker_settings", "urls", "apps")
    ]


def test_folders_of_evaluators_import_in_no_circle() -> None:
    found = rooms(neighbours({dotted(path): read(path) for path in modules("evaluators")}))
    assert "evaluators.grading.gates" in found
    assert circle(found) == []


@pytest.mark.parametrize("part", PURE)
def test_the_pure_parts_do_not_reach_the_world(part: str) -> None:
    found = {str(path.relative_to(ROOT)): impure(read(path)) for path in modules(part)}
    assert found
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("evaluators", "import scenarios.spec"),
        ("evaluators", "from evalhub.web import pages"),
        ("scenarios", "def f():\n    from runs.models import Run"),
        ("runs", "from evalhub.settings import X"),
    ],
)
def test_it_would_see_an_import_upwards(package: str, code: str) -> None:
    assert len(upward(package, ast.parse(code))) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("import p.b", "from p.a import X"),
        ("from p import b", "if TYPE_CHECKING:\n    from p.a import X"),
        ("class A:\n    from p.b import X", "try:\n    import p.a\nexcept ImportError:\n    pass"),
    ],
)
def test_it_would_see_a_circle(first: str, second: str) -> None:
    graph = neighbours({"p": ast.parse(""), "p.a": ast.parse(first), "p.b": ast.parse(second)})
    assert set(circle(graph)) == {"p.a", "p.b"}


def test_it_would_see_an_import_from_a_room_above() -> None:
    assert wrong_way({"runs.queue": {"runs.models"}, "runs.pages": {"runs.queue"}}) == []
    assert wrong_way({"runs.queue": {"runs.pages"}}) == ["runs.queue imports runs.pages"]


def test_what_a_function_imports_makes_no_circle() -> None:
    later = "def f():\n    import p.a"
    assert circle(neighbours({"p.a": ast.parse("import p.b"), "p.b": ast.parse(later)})) == []


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("scenarios", "from evalhub.teams.models import Project"),
        ("runs", "from evalhub import web, teams"),
        ("runs", "from scenarios.spec import ScenarioSpec"),
        ("evaluators", "import evaluators.model, runstats"),
    ],
)
def test_it_lets_imports_downwards_pass(package: str, code: str) -> None:
    assert upward(package, ast.parse(code)) == []


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from django.db import models",
        "import os\nos.environ['A']",
        "from os import environ",
        "import time\ntime.time()",
        "import datetime\ndatetime.datetime.now()",
    ],
)
def test_it_would_see_what_reaches_the_world(code: str) -> None:
    assert len(impure(ast.parse(code))) == 1
