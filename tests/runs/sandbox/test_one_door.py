"""Nothing that works on trials opens, lists, writes or removes a file by a path of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3] / "runs"
WORKING_ON_TRIALS = ("sandbox", "targets", "results", "exchange", "engine", "launch/inputs.py")

METHODS = frozenset(
    (
        *("open", "read_text", "read_bytes", "write_text", "write_bytes", "touch"),
        *("iterdir", "glob", "rglob", "walk", "is_file", "is_dir", "stat", "lstat", "chmod"),
        *("mkdir", "rmdir", "unlink", "rename", "symlink_to", "hardlink_to"),
    )
)
FUNCTIONS = frozenset(
    ("scandir", "listdir", "remove", "makedirs", "copyfile", "copytree", "rmtree", "mkdtemp", "mkstemp")
)

ALLOWED = {
    "sandbox/safe_paths.py": "the door itself",
    "sandbox/safe_walk.py": "the door for whole folders",
    "sandbox/landlock.py": "runs inside the sandbox",
    "sandbox/bubblewrap.py": "looks at the system's folders and its own program; copies the system's /etc to the data directory",
    "sandbox/filtered_network.py": "reads the system's resolver; opens namespaces under /proc, and looks at bubblewrap",
    "sandbox/starting.py": "opens namespaces under /proc",
    "sandbox/process_tree.py": "the control groups of the system; reads /proc",
    "sandbox/sandbox.py": "looks at the folders of PATH",
    "sandbox/recording/recognition.py": "reads /proc, in the recorder's own process; reads programs by descriptors that never lead out of the process's root",
    "sandbox/recording/recorder.py": "lists names without following links, in a process of its own",
    "sandbox/process.py": "asks whether the working directory exists, which the sandbox then opens by itself",
    "targets/agents/agent_program.py": "makes the folder for logs and finds the program that the target names",
    "targets/agents/vscode.py": "makes the folder and reads the template that the target names",
    "targets/providers/replay.py": "asks whether the recordings that the target names exist",
    "engine/captures.py": "reads a module of evalhub",
    "launch/inputs.py": "reads what the command line names",
    "sandbox/worker_settings.py": "reads the memory limit of the system",
    "targets/import_targets.py": "finds the targets file that the command line names",
    "exchange/examples.py": "reads the examples of evalhub",
    "exchange/exports/files.py": "writes what the command line names; appends to the summary that a CI job names",
    "results/files/artifacts.py": "the data directory, by hash; the store's own id",
    "exchange/results_files/importers.py": "reads what the command line names, without links",
    "exchange/imports/session_files.py": "reads what the command line names, without following links out of it",
    "results/files/backup.py": "the data directory",
    "results/files/workspace_archive.py": "an archive in the data directory; makes an archive in memory",
    "engine/workspace/protected_files.py": "keeps files in the worker's folder, and lays them below descriptors of real folders",
    "engine/workspace/git_settings.py": "looks whether a hook is executable, and opens all else by the door",
    "engine/unrecorded.py": "the data directory",
    "engine/mcp/mcp_serving.py": "copies modules of evalhub into folders that no agent can write to",
    "engine/mcp/mcp_packages.py": "moves and copies packages without following links; no agent or trial can write to them",
    "engine/mcp/mcp_connect.py": "runs inside the sandbox",
    "engine/mcp/mcp_messages.py": "runs inside the sandbox",
    "engine/mcp/mcp_proxy.py": "runs inside the sandbox",
    "engine/workspace/workspace.py": "makes the directories of a trial, before anything of it runs; the worker's own folder, which holds the trials'; makes a workspace from its fixture, before anything of the trial runs",
}
"""Modules that touch files which no trial can have planted, each with what they are."""


def modules() -> Iterator[tuple[str, ast.AST]]:
    for part in WORKING_ON_TRIALS:
        path = ROOT / part
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def touching(tree: ast.AST) -> list[str]:
    """Return the calls that open, look at, write or remove a file by its path."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [f"{call.lineno}: {ast.unparse(call.func)}" for call in calls if _touches(call.func)]


def _touches(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id in {"open", "TemporaryDirectory"} | FUNCTIONS - {"remove"}
    if not isinstance(called, ast.Attribute):
        return False
    if isinstance(called.value, ast.Name) and called.value.id in {"os", "shutil", "tempfile"}:
        return called.attr in METHODS | FUNCTIONS
    return called.attr in METHODS


def test_what_works_on_trials_opens_files_by_one_door_and_every_exception_is_needed():
    found = {name: touching(tree) for name, tree in modules()}
    assert len(found) > 50
    assert {name: calls for name, calls in found.items() if calls and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not found.get(name)] == []


def test_the_rule_sees_what_it_forbids():
    text = "open(p); p.read_bytes(); os.open(p, 0); shutil.rmtree(p); TemporaryDirectory(); os.read(fd, 1)"
    assert len(touching(ast.parse(text))) == 5
