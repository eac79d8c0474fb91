"""Holds the direction of the packages (docs: the house page)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from tests.source_imports import ROOT, circle, imports, module_name, modules, neighbours, read

ORDER = ("evaluators", "scenarios", "runs", "evalhub")
"""From the bottom to the top: a package imports only from those before it."""
LEAVES = ("evalhub.lib", "evalhub.web", "evalhub.teams")
"""Parts of evalhub that scenarios and runs may import, and that import neither."""
BASE = ("errors", "labels", "models")
"""Modules and folders of runs that every room may import."""
ROOMS = (
    "sandbox",
    "db",
    "workers",
    "targets",
    "results",
    "compare",
    "review",
    "alerts",
    "exchange",
    "launch",
    "engine",
    "suites",
)
"""The rooms of runs. The inside of a room imports only from rooms before it."""
WIRING = ("tasks", "urls", "apps", "management")
"""What puts the rooms together: it may import everything."""
OUTSIDE = ("views", "api", "forms", "command", "run_arguments", "worker_checks", "examples")
"""Names of modules and folders that belong to a room's outside, beside those that end in `_views`, `_api` or `_page`."""
PAGE_IN_A_PAGE = ("runs.compare.compare_page.views", "runs.results.trial_page.side_by_side")
"""A comparison shows two trials of an opened scenario in place."""
MOST_FOLDERS, MOST_MODULES, MOST_FOLDERS_OF_A_ROOM = 12, 40, 5


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMED_ALIKE = _names("Command Config companions fixture_folders lints main matches parse read")
"""What one caller calls of each format, program or command."""
FACES: Mapping[str, frozenset[str]] = {
    "sandbox": _names("""
        egress outbound outbound_http process profiles recording.record safe_paths safe_walk sandbox
        streams target_roots worker_settings
    """),
    "db": _names("""
        disk outbox retry statements transactions
    """),
    "workers": _names("""
        claims fair_share heartbeat job_runner jobs labels wakeups worker_registry
    """),
    "targets": _names("""
        agents.cli agents.cli_judge agents.program_lookup agents.session_end definitions entries
        import_targets language_models.language_model language_models.litellm
        language_models.stub_chat model_server.script pricing providers.access providers.base
        providers.mock providers.options providers.prices providers.registry providers.replay
        schemas target_list target_schemas
    """),
    "results": _names("""
        address_filters comparability counting diagnosis_thresholds digests drafts
        failure_reasons files.artifacts
        files.workspace_archive find_run layer_totals lookup measures outcome_history progress
        rates repeated_statements rollups run_filters run_list run_rows schemas search.trial_search
        spending trial_rows validations
    """),
    "compare": _names("""
        baselines comparison default_suite differences guidance.lift_findings line looks lost_scenarios
        measure_changes raised_alerts retests shown_changes side_by_side
    """),
    "review": _names("""
        calibrations diagnosis_reviews overruling reviewing
    """),
    "alerts": _names(""),
    "exchange": _names("""
        exports.document exports.exports exports.files exports.result_formats imports.import_results
        imports.store_results results_files.archived_runs results_files.importers
        results_files.skill_creator results_files.values
    """),
    "launch": _names("""
        confirmation estimate inputs lift request run_history run_request selection separation
    """),
    "engine": _names("""
        context judges proof_agents recording retrying run_here stored_trials.adopting
        stored_trials.reassessing stored_trials.reassessment_plan task trial
    """),
    "suites": _names(""),
}
"""What other rooms may import of a room."""
PURE = ("evaluators", "evalhub/lib", "scenarios/formats", "scenarios/spec.py")
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
    allowed = LEAVES[:1] if package == "evaluators" else LEAVES
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


def rooms(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return which of the others each folder of a package imports from, and each module on its top."""
    found: dict[str, set[str]] = {}
    for name, others in graph.items():
        found.setdefault(room(name), set()).update(room(other) for other in others)
    return {name: others - {name} for name, others in found.items()}


def room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def is_outside(name: str) -> bool:
    """Return whether a module of a room is a page, REST, a form or a command."""
    _, _, *folders, last = name.split(".")
    return (
        last in OUTSIDE
        or last.endswith(("_views", "_api"))
        or any(folder in OUTSIDE or folder.endswith("_page") for folder in folders)
    )


def fault(name: str, other: str) -> str | None:
    """Say what is wrong with a module of a room that imports one of another room; None for nothing."""
    here, there = room(name).partition(".")[2], room(other).partition(".")[2]
    if here == there or there not in ROOMS or here in WIRING:
        return None
    if is_outside(other) and (name, other) != PAGE_IN_A_PAGE:
        return f"{name} imports {other}, which is the outside of its room"
    if here in BASE or (not is_outside(name) and ROOMS.index(there) > ROOMS.index(here)):
        return f"{name} imports {other}, whose room is later"
    if not is_outside(other) and other.removeprefix(f"runs.{there}.") not in FACES[there]:
        return f"{name} imports {other}, which isn't in the face of its room"
    return None


def faults(graph: Mapping[str, set[str]]) -> list[str]:
    """Return what is wrong with the imports between rooms."""
    found = (
        fault(name, other)
        for name, others in sorted(graph.items())
        for other in sorted(others)
        if room(name) != "runs" and not name.startswith("runs.migrations")
    )
    return [each for each in found if each]


@cache
def graph_of_runs() -> dict[str, set[str]]:
    return neighbours({module_name(path): read(path) for path in modules("runs")}, in_functions=True)


@pytest.mark.parametrize("package", ORDER[:-1])
def test_nothing_imports_upwards(package: str) -> None:
    found = {str(path.relative_to(ROOT)): upward(package, read(path)) for path in modules(package)}
    assert found
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.slow
def test_no_private_module_of_a_library_is_imported() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules(*ORDER, "tests", "manage.py")
        for line, name in imports(read(path))
        if any(part.startswith("_") and not part.startswith("__") for part in name.split("."))
        and not within(name, *ORDER, "tests")
    ]
    assert found == []


def test_a_public_name_has_one_meaning() -> None:
    found: dict[str, list[str]] = {}
    for path in modules(*ORDER):
        if path.name == "template_filters.py" or {"migrations", "examples"} & {*path.parts}:
            continue
        for node in read(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(found) > 1000
    twice = {name: paths for name, paths in found.items() if len(paths) > 1 and name not in NAMED_ALIKE}
    assert twice == {}


def test_private_access_has_three_exceptions_at_most() -> None:
    settings = (ROOT / "pyproject.toml").read_text().partition("per-file-ignores]")[2]
    lines = [text for path in modules(*ORDER, "tests") for text in path.read_text().splitlines()]
    excepted = [text for text in lines if "noqa: SLF" + "001" in text]
    assert len(excepted) + settings.count('"SLF"') <= 3


def test_page_tests_read_the_page_and_not_the_context() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules("tests/web")
        for node in ast.walk(read(path))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "context"
    ]
    assert found == []


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
    graph = neighbours({module_name(path): read(path) for path in modules(*ORDER)})
    assert {name.partition(".")[0] for name in graph} == set(ORDER)
    assert circle(graph) == []


def test_rooms_import_only_faces_and_insides_only_earlier_rooms() -> None:
    assert faults(graph_of_runs()) == []


def test_faces_name_only_what_another_room_imports() -> None:
    graph = graph_of_runs()
    used = {other for name, others in graph.items() for other in others if room(name) != room(other)}
    named = {f"runs.{name}.{module}" for name, modules in FACES.items() for module in modules}
    assert named - used == set()


def test_every_folder_of_runs_is_a_room() -> None:
    folders = {path.parent.name for path in (ROOT / "runs").glob("*/__init__.py")}
    assert folders == {*ROOMS, "models", "migrations", "management"}
    assert len(ROOMS) <= MOST_FOLDERS


def test_no_folder_of_runs_has_too_many_modules_or_folders() -> None:
    for folder in {path.parent for path in modules(*(f"runs/{name}" for name in ROOMS))}:
        inside = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(inside) <= MOST_MODULES, folder
        assert len(list(folder.glob("*/__init__.py"))) <= MOST_FOLDERS_OF_A_ROOM, folder


def test_rooms_are_in_the_order_of_the_architecture_page() -> None:
    section = (ROOT / "docs/architecture.md").read_text().split("## Inside `runs`")[1].split("\n## ")[0]
    rows = "\n".join(re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE))
    assert re.findall(r"`runs/(\w+)/`", rows) == ["models", "migrations", *ROOMS, "management"]


def test_folders_of_evaluators_import_in_no_circle() -> None:
    found = rooms(neighbours({module_name(path): read(path) for path in modules("evaluators")}))
    assert "evaluators.grading" in found
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


@pytest.mark.parametrize(
    ("name", "other", "said"),
    [
        ("runs.results.outcome_history", "runs.engine.recording", "later"),
        ("runs.models.run", "runs.sandbox.capture", "later"),
        ("runs.engine.lanes", "runs.results.usage_views", "outside"),
        ("runs.results.usage_views", "runs.targets.api", "outside"),
        ("runs.engine.lanes", "runs.results.changed_lines", "face"),
    ],
)
def test_it_would_see_a_wrong_import(name: str, other: str, said: str) -> None:
    assert said in (fault(name, other) or "")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("runs.engine.lanes", "runs.workers.claims"),
        ("runs.results.run_page.views", "runs.engine.recording"),
        ("runs.management.commands.grade", "runs.engine.grading.grade"),
        ("runs.results.outcome_history", "runs.results.usage"),
    ],
)
def test_it_lets_a_right_import_pass(name: str, other: str) -> None:
    assert fault(name, other) is None


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
