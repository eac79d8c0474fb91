"""Examine an installation: what works, what is missing, and what to do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from evalhub.health import broker_problem
from evalhub.lib.numbers import format_count
from evalhub.web.commands import ensure_database
from runs.db.disk import disk_shortage, folders_to_write, free_bytes
from runs.db.transactions import database_now
from runs.errors import RequestError
from runs.results.files.artifacts import store_problems
from runs.sandbox.sandbox import MEANING, Level
from runs.sandbox.worker_settings import containment
from runs.targets.agents.opencode import RIPGREP, WITHOUT_RIPGREP
from runs.workers.worker_registry import workers_online

AGENTS = {
    "codex": "npm install -g @openai/codex",
    "claude": "npm install -g @anthropic-ai/claude-code",
    "opencode": "npm install -g opencode-ai",
    "gemini": "npm install -g @google/gemini-cli",
    "qwen": "npm install -g @qwen-code/qwen-code",
    "copilot": "npm install -g @github/copilot",
}
"""Coding agents by program, with the command that installs each."""
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "GEMINI_API_KEY")


class State(StrEnum):
    """How a part is."""

    OK = "ok"
    MISSING = "missing"
    """It isn't there, and nothing needs it unless you use it."""
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class PartStatus:
    """What is known of one part of the installation."""

    part: str
    state: State
    sentence: str
    advice: str = ""


def run_checks() -> Iterator[PartStatus]:
    """Yield what each check finds; a check that breaks is a problem, and the others go on."""
    for part, check in CHECKS.items():
        try:
            yield from check()
        except (Error, ImproperlyConfigured, OSError, RequestError, ValueError) as error:
            yield PartStatus(part, State.PROBLEM, f"{type(error).__name__}: {error}".splitlines()[0])


def _database() -> Iterator[PartStatus]:
    try:
        ensure_database()
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
    except Error as error:
        reason = str(error).strip().splitlines()[0]
        yield PartStatus("database", State.PROBLEM, f"It does not answer: {reason}.", "Check DATABASE_URL.")
        return
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        advice = "Run 'manage.py migrate'."
        yield PartStatus(
            "database", State.PROBLEM, f"{format_count(len(missing), 'migration')} missing.", advice
        )
    else:
        name = settings.DATABASES["default"]["NAME"]
        yield PartStatus("database", State.OK, f"{connection.display_name}, {name}.")


def _clock() -> Iterator[PartStatus]:
    difference = abs(database_now() - time.time())
    # Largest difference between the clocks of this machine and the database.
    if difference > 2.0:
        sentence = f"This machine and the database differ by {difference:.0f} s."
        yield PartStatus("clock", State.WARNING, sentence, "Synchronise both with NTP.")
    else:
        yield PartStatus("clock", State.OK, "This machine and the database agree.")


def _broker() -> Iterator[PartStatus]:
    problem = broker_problem()
    if not problem:
        yield PartStatus("broker", State.OK, "It answers.")
    elif settings.BROKER_URL:
        yield PartStatus("broker", State.PROBLEM, problem, "Start it, or correct EVALHUB_BROKER_URL.")
    else:
        yield PartStatus(
            "broker", State.WARNING, "The embedded broker is not running.", "'make run' starts it."
        )


def _workers() -> Iterator[PartStatus]:
    online, problem = workers_online()
    if not online:
        advice = "'make run' starts one." if settings.EMBEDDED else "Start one with 'make worker'."
        yield PartStatus("workers", State.WARNING, "No worker is running.", advice)
    elif problem:
        yield PartStatus("workers", State.PROBLEM, problem)
    else:
        yield PartStatus("workers", State.OK, f"{online} running.")


def _sandbox() -> Iterator[PartStatus]:
    sandbox = containment()
    if problem := sandbox.agent_problem:
        sentence, _, advice = problem.partition(". ")
        yield PartStatus("sandbox", State.PROBLEM, f"{sentence}.", advice)
    elif sandbox.level is Level.BWRAP:
        yield PartStatus("sandbox", State.OK, f"{sandbox.level}: {MEANING[sandbox.level]}")
    else:
        advice = "Install bubblewrap and allow user namespaces to hide the worker from agents."
        yield PartStatus("sandbox", State.WARNING, f"{sandbox.level}: {MEANING[sandbox.level]}", advice)
    if why := sandbox.shared_counts:
        yield PartStatus(
            "sandbox",
            State.WARNING,
            f"One trial can take all inotify instances and namespaces of the worker's user: {why}.",
            "Allow the worker's user to create user namespaces and to write their limits in /proc/sys/user.",
        )


def _recording() -> Iterator[PartStatus]:
    # Imported here because it loads what runs trials.
    from runs.engine.tool.tool_recording import recording_problem

    if problem := recording_problem(containment()):
        yield PartStatus(
            "recording", State.WARNING, f"Tools are not recorded: {problem}", "Their events are read instead."
        )
    else:
        yield PartStatus("recording", State.OK, "Every execution of a tool is recorded.")


def _agents() -> Iterator[PartStatus]:
    for program, install in AGENTS.items():
        path = shutil.which(program)
        if path is None:
            yield PartStatus(
                "agents", State.MISSING, f"{program}: not installed.", f"'{install}' installs it."
            )
        elif version := _version(path):
            yield PartStatus("agents", State.OK, f"{program}: {version}, {path}.")
            if program == "opencode" and shutil.which(RIPGREP) is None:
                yield PartStatus("agents", State.WARNING, f"opencode {WITHOUT_RIPGREP}")
        else:
            advice = f"Run '{path} --version' to see why, or install it again: {install}"
            yield PartStatus("agents", State.WARNING, f"{program}: {path} does not start.", advice)


def _version(path: str) -> str:
    """Return the first line that a program prints for `--version`; empty if it fails."""
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20.0,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(done.stdout.strip().splitlines()), "") if done.returncode == 0 else ""


def _keys() -> Iterator[PartStatus]:
    present = [name for name in KEYS if os.environ.get(name)]
    if present:
        yield PartStatus("keys", State.OK, f"Set: {', '.join(present)}.")
    else:
        advice = f"Set one such as {KEYS[0]} to ask models or judge with them."
        yield PartStatus("keys", State.MISSING, "No key of a model provider is set.", advice)


def _packages() -> Iterator[PartStatus]:
    # Imported here because it loads what runs trials.
    from runs.engine.mcp.mcp_packages import FOLDER, LAUNCHERS

    how = f"An MCP server's packages are fetched once for a run, into {settings.WORK_DIR / FOLDER}; trials get copies."
    for program, install in LAUNCHERS.items():
        path = shutil.which(program)
        if path is None:
            yield PartStatus(
                "packages", State.MISSING, f"{program}: not installed.", f"'{install}' installs it."
            )
        else:
            yield PartStatus("packages", State.OK, f"{program}: {path}. {how}")


def _disk() -> Iterator[PartStatus]:
    problem = disk_shortage()
    free = min(map(free_bytes, folders_to_write()))
    text = f"{free / 1e9:.1f} GB free in {settings.DATA_DIR}."
    yield PartStatus("disk", State.PROBLEM, problem) if problem else PartStatus("disk", State.OK, text)


def _files() -> Iterator[PartStatus]:
    problems = store_problems()
    for problem in problems:
        yield PartStatus("files", State.PROBLEM, problem)
    if not problems:
        yield PartStatus("files", State.OK, "Web and workers use the same store.")


CHECKS: dict[str, Callable[[], Iterator[PartStatus]]] = {
    "database": _database,
    "clock": _clock,
    "broker": _broker,
    "workers": _workers,
    "sandbox": _sandbox,
    "recording": _recording,
    "agents": _agents,
    "packages": _packages,
    "keys": _keys,
    "disk": _disk,
    "files": _files,
}
