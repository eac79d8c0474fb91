"""Find what commands after the agent run: scripts that they name, the tool, and what runners take.

What runners take is known by convention. Commands are not interpreted, so it doesn't matter how they
start a script. A name that one computes isn't found.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from evaluators.tool_use.launchers import SCRIPT_SUFFIX
from evaluators.tool_use.tool import Tool
from scenarios.guidance import is_tool_file
from scenarios.named_files import NamedFiles

Read = Callable[[str], bytes]
"""Returns the beginning of a file; nothing where there is none."""

PACKAGE = "package.json"
_OTHER_SUFFIX = re.compile(r"\.(?:awk|bats|fish|jl|jq|ksh|mk|ps1|r|sed|tcl|zsh)$", re.IGNORECASE)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*|pytest|py\.test|tox")
_MAKE = frozenset(("make", "gmake"))
_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "npx", "bun"))
_MODULE = re.compile(r"\s-m\s+([\w.]+)")
_TEST_SETTINGS = frozenset(("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"))
_OF_PACKAGES = frozenset((PACKAGE, ".npmrc"))
_STARTED_BY_SITE = frozenset(("sitecustomize", "usercustomize"))
_SHADOWING = sys.stdlib_module_names | _STARTED_BY_SITE
_NEVER_COLLECTED = frozenset(
    (".git", "node_modules", "__pycache__", ".tox", ".venv", "venv", "site-packages")
)


class Runners(NamedTuple):
    """The runners that commands name."""

    python: bool
    make: bool
    packages: bool


class WatchedNames:
    """What commands name, and which runners they start."""

    def __init__(self, commands: Iterable[str], tool: Tool | None, read: Read) -> None:
        """Read the commands, and the scripts of the package.json that package managers in them run."""
        lines = [*commands]
        self._tool = tool
        self._env = NamedFiles(tool.env.values() if tool else ())
        words = NamedFiles(lines).words
        if not _PACKAGE_MANAGERS.isdisjoint(words):
            for folder in ("", *words):
                lines += _package_scripts(words, read(posixpath.join(folder, PACKAGE)))
        modules = [word.replace(".", "/") for line in lines for word in _MODULE.findall(line)]
        self._named = NamedFiles(
            lines, *(f"{each}{end}" for each in modules for end in (".py", "/__main__.py"))
        )
        programs = {posixpath.basename(word) for word in self._named.words}
        self._runners = Runners(
            python=any(map(_PYTHON.fullmatch, programs)),
            make=not _MAKE.isdisjoint(programs),
            packages=not _PACKAGE_MANAGERS.isdisjoint(programs),
        )

    def find_watched(self, files: Mapping[str, bool], read: Read) -> frozenset[str]:
        """Return which files are watched. `files` says of each path whether it is executable."""
        scripts = {path for path in files if self._named.has(path) and _is_script(path, files[path], read)}
        tests = {path for path in files if self._runners.python and _is_collected(path)}
        folders = {"", *map(posixpath.dirname, scripts | tests)}
        return frozenset(
            path
            for path in files
            if path in scripts
            or path in tests
            or is_tool_file(path, self._tool)
            or self._is_taken(path, folders)
        )

    def _is_taken(self, path: str, folders: set[str]) -> bool:
        """Return whether a runner takes a file by itself: from the root, a named folder or one beside a script."""
        folder, name = posixpath.split(path)
        if self._runners.python and self._is_module(path, folders):
            return True
        if not self._is_place(folder, folders):
            return False
        return (
            (self._runners.python and name in _TEST_SETTINGS)
            or (
                self._runners.make
                and (name in ("GNUmakefile", "makefile", "Makefile") or name.endswith(".mk"))
            )
            or (self._runners.packages and name in _OF_PACKAGES)
        )

    def _is_module(self, path: str, folders: set[str]) -> bool:
        """Return whether Python may load a module in place of its own, or before a script."""
        folder, name = posixpath.split(path)
        stem, suffix = posixpath.splitext(name)
        if posixpath.basename(folder) == "site-packages":
            is_named = path.split("/")[0] in self._named.parts | self._env.parts
            return is_named and (suffix == ".pth" or stem in _STARTED_BY_SITE)
        if suffix not in (".py", ".pyc"):
            return False
        if stem == "__init__":
            folder, stem = posixpath.split(folder)
        return stem in _SHADOWING and self._is_place(folder, folders)

    def _is_place(self, folder: str, folders: set[str]) -> bool:
        return folder in folders or self._named.has(folder) or self._env.has(folder)


def is_test(path: str) -> bool:
    """Return whether pytest takes a file's name for that of tests."""
    name = posixpath.basename(path)
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _is_collected(path: str) -> bool:
    *folders, name = path.split("/")
    return (name == "conftest.py" or is_test(path)) and _NEVER_COLLECTED.isdisjoint(folders)


def _is_script(path: str, is_executable: bool, read: Read) -> bool:
    has_suffix = SCRIPT_SUFFIX.search(path) or _OTHER_SUFFIX.search(path)
    return is_executable or has_suffix is not None or read(path).startswith(b"#!")


def _package_scripts(words: frozenset[str], content: bytes) -> list[str]:
    """Return the lines of a package.json's scripts that the words name, of those around them and those they name."""
    lines: dict[str, str] = {}
    with suppress(ValueError, RecursionError, AttributeError, TypeError):
        scripts = json.loads(content).get("scripts", {})
        while named := {f"{when}{word}" for word in words for when in ("", "pre", "post")} & (
            scripts.keys() - lines
        ):
            lines |= {name: str(scripts[name]) for name in named}
            words = NamedFiles(lines.values()).words
    return [*lines.values()]
