"""Find the files of a workspace that commands execute.

These are programs, the scripts of interpreters, Makefiles, pytest's tests and configuration, the scripts of a
package.json, and what these scripts run one level on. What a command only reads is not among them.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.tool_use.launchers import SHELLS
from evaluators.tool_use.shell import LaunchedCommand, Segment, read_line

Read = Callable[[str], str | None]
"""Returns a file's text; None if there is none."""

FIXTURE_VARIABLE = "LLM_TOOL_TEST_FIXTURE_DIR"
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
PYTEST_SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
PACKAGE = "package.json"
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_WITHOUT_FOLDER = re.compile(r"-[A-Za-z]*[IP][A-Za-z]*")
"""Options of Python with which it doesn't look for modules beside the script."""
_SHEBANG = re.compile(r"#![ \t]*(?:/usr/bin/env[ \t]+(?:-S[ \t]+)?)?(?:\S*/)?([\w.]+)")
_OWN_FOLDER = re.compile(
    r"\$\(dirname (?:-- )?\"?\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?\})\"?\)|\$\{(?:0|BASH_SOURCE)%/\*\}"
)
_CHANGING = re.compile(r"\$\(cd[ \t]+(?:-- )?\"?([^\s\"&;]+)\"?[ \t]*&&[ \t]*pwd[ \t]*(?:-P[ \t]*)?\)")
_ASSIGNED = re.compile(
    r"^[ \t]*(?:export[ \t]+|readonly[ \t]+)?(\w+)=\"?(\$?[\w./-]+)\"?[ \t]*$", re.MULTILINE
)
_MOST_VARIABLES = 50
_STARTED_BY_PYTHON = re.compile(
    r"(?:subprocess\.\w+|os\.(?:system|popen)|Popen|run_path)\(\s*(\[[^\]]{0,2000}\]|[\"'][^\"'\n]{0,2000}[\"'])"
)
_QUOTED = re.compile(r"[\"']([^\"'\n]*)[\"']")
_WITH_VALUE = frozenset(
    ("-p", "-k", "-m", "-c", "-o", "-n", "-W", "-r", "--rootdir", "--confcutdir", "--tb", "--dist")
)
"""Options of pytest whose value is the next word."""
_NEVER_COLLECTED = frozenset((".git", "node_modules", "__pycache__", ".venv", "venv"))
_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_SHORTCUTS = frozenset(("test", "start", "stop", "restart"))


@dataclass(frozen=True)
class ExecutedFiles:
    """What commands execute, as paths of the workspace."""

    files: frozenset[str] = frozenset()
    """Paths that are executed if they exist."""
    module_folders: frozenset[str] = frozenset()
    """Where Python looks for modules before its own; empty is the workspace's root."""
    tests: frozenset[str] = frozenset()
    """Files and folders that pytest collects; empty is everything."""

    def collects(self, path: str) -> bool:
        """Return whether pytest reads a file: a test that is asked for, or any conftest.py."""
        *folders, name = path.split("/")
        if not self.tests or not _NEVER_COLLECTED.isdisjoint(folders):
            return False
        is_there = any(not place or path == place or path.startswith(f"{place}/") for place in self.tests)
        return name == "conftest.py" or path in self.tests or (is_there and is_test(path))


def is_test(path: str) -> bool:
    """Return whether pytest takes a file's name for that of tests."""
    name = posixpath.basename(path)
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def find_executed(commands: Iterable[str], read: Read, *, fixture: str = "", path: str = "") -> ExecutedFiles:
    """Return what shell commands execute in a workspace. Never raises.

    `fixture` is the workspace's absolute path, `path` the commands' PATH, whose folders in the workspace count.
    """
    finder = _Finder(read, fixture)
    finder.path_folders = tuple(
        place for folder in path.split(":") if folder and (place := finder.place("", folder)) is not None
    )
    for command in commands:
        finder.line(command, "", in_script=False)
    return ExecutedFiles(frozenset(finder.files), frozenset(finder.module_folders), frozenset(finder.tests))


@dataclass
class _Finder:
    """Collects what commands execute."""

    read: Read
    fixture: str
    path_folders: tuple[str, ...] = ()
    files: set[str] = field(default_factory=set)
    module_folders: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)

    def place(self, folder: str, word: str) -> str | None:
        """Return a word as a path of the workspace; None if it leads outside or isn't known."""
        for name, start in ((FIXTURE_VARIABLE, ""), ("PWD", folder)):
            for written in (f"${name}", f"${{{name}}}"):
                if word == written or word.startswith(f"{written}/"):
                    word, folder = word[len(written) :].lstrip("/") or ".", start
        if self.fixture and (word == self.fixture or word.startswith(f"{self.fixture}/")):
            word, folder = word[len(self.fixture) :].lstrip("/") or ".", ""
        if not word or word.startswith(("/", "~")) or "$" in word or "`" in word:
            return None
        path = posixpath.normpath(posixpath.join(folder, word))
        return None if path.startswith("..") else "" if path == "." else path

    def line(self, text: str, folder: str, *, in_script: bool) -> None:
        """Read a command or, one level on, the text of a script."""
        for segment in read_line(text).segments:
            folder = self.segment(segment, folder, in_script=in_script)

    def segment(self, segment: Segment, folder: str, *, in_script: bool) -> str:
        """Read one simple command; return the folder of the next."""
        for before, stage in zip((None, *segment.stages), segment.stages, strict=False):
            name, arguments = stage.words[0], stage.words[1:]
            if name in ("cd", "pushd") and arguments:
                folder = target if (target := self.place(folder, arguments[-1])) is not None else folder
            elif name in (".", "source") and arguments:
                self.execute(folder, arguments[0], "sh", in_script=in_script)
            elif name in ("make", "gmake"):
                self.make(folder, arguments, in_script=in_script)
            elif name in ("pytest", "py.test"):
                self.pytest(folder, arguments)
            elif name in _PACKAGE_MANAGERS:
                self.package(folder, arguments, in_script=in_script)
            if _PYTHON.fullmatch(name):
                self.python(folder, arguments)
            self.program(stage, before, folder, in_script=in_script)
        return folder

    def program(
        self, stage: LaunchedCommand, before: LaunchedCommand | None, folder: str, *, in_script: bool
    ) -> None:
        """Add the program of a command, or the script or module of an interpreter."""
        written = stage.path or stage.words[0]
        interpreter = before.words[0] if before and stage.is_script else ""
        if stage.path or stage.is_script:
            self.execute(folder, written, interpreter, in_script=in_script)
        if stage.is_script and before and "-m" in before.words:
            module = posixpath.join(folder, written.replace(".", "/"))
            self.files.update((f"{module}.py", f"{module}/__main__.py"))
        elif not stage.path:
            self.files.update(posixpath.join(each, written) for each in self.path_folders)

    def execute(self, folder: str, word: str, interpreter: str, *, in_script: bool) -> None:
        """Add a file, and what it runs if a command runs it itself."""
        path = self.place(folder, word)
        if not path:
            return
        self.files.add(path)
        text = None if in_script else self.read(path)
        if text is None:
            return
        text = text[:LONGEST_TEXT]
        shebang = _SHEBANG.match(text)
        interpreter = interpreter or (shebang[1] if shebang else "")
        if interpreter in SHELLS:
            self.line(_with_known_folders(text, posixpath.dirname(path)), folder, in_script=True)
        elif _PYTHON.fullmatch(interpreter):
            self.module_folders.add(posixpath.dirname(path))
            for command in _commands_of_python(text):
                self.line(command, folder, in_script=True)

    def python(self, folder: str, arguments: Sequence[str]) -> None:
        """Add where Python looks for modules first: the script's folder, or with `-c` and `-m` the current one."""
        for argument in arguments:
            if _WITHOUT_FOLDER.fullmatch(argument):
                return
            if argument in ("-c", "-m") or argument == "-":
                break
            if not argument.startswith("-"):
                script = self.place(folder, argument)
                if script is not None:
                    self.module_folders.add(posixpath.dirname(script))
                return
        self.module_folders.add(folder)

    def make(self, folder: str, arguments: Sequence[str], *, in_script: bool) -> None:
        for option, value in pairwise(arguments):
            if option in ("-C", "--directory") and (target := self.place(folder, value)) is not None:
                folder = target
        named = [value for option, value in pairwise(arguments) if option in ("-f", "--file")]
        for name in named or MAKEFILES:
            path = self.place(folder, name)
            if not path:
                continue
            self.files.add(path)
            text = None if in_script else self.read(path)
            for line in (text or "")[:LONGEST_TEXT].replace("\\\n", " ").splitlines():
                if line.startswith("\t"):
                    self.line(line.strip().lstrip("@-+"), folder, in_script=True)
                elif line.split()[:1] in (["include"], ["-include"], ["sinclude"]):
                    self.files.update(filter(None, (self.place(folder, each) for each in line.split()[1:])))

    def pytest(self, folder: str, arguments: Sequence[str]) -> None:
        parents = [folder]
        while parents[-1]:
            parents.append(posixpath.dirname(parents[-1]))
        self.files.update(posixpath.join(parent, name) for parent in parents for name in PYTEST_SETTINGS)
        before = ("", *arguments)
        named = [
            argument.partition("::")[0]
            for option, argument in zip(before, arguments, strict=False)
            if not argument.startswith("-") and option not in _WITH_VALUE
        ]
        places = [place for name in named if (place := self.place(folder, name)) is not None]
        self.tests.update(places or [folder])
        self.module_folders.add(folder)

    def package(self, folder: str, arguments: Sequence[str], *, in_script: bool) -> None:
        words = [each for each in arguments if not each.startswith("-")]
        run = words[1:2] if words[:1] in (["run"], ["run-script"]) else words[:1]
        if not run or (words[0] not in ("run", "run-script") and run[0] not in _SHORTCUTS):
            return
        path = posixpath.join(folder, PACKAGE)
        self.files.add(path)
        text = None if in_script else self.read(path)
        with suppress(ValueError, RecursionError, AttributeError):
            scripts = json.loads(text or "{}").get("scripts", {})
            self.line(str(scripts.get(run[0], "")), folder, in_script=True)


def _with_known_folders(text: str, folder: str) -> str:
    """Return a shell script with its own folder, and variables that have one plain value, written out."""
    script_folder = posixpath.join(f"${FIXTURE_VARIABLE}", folder).rstrip("/")
    text = _CHANGING.sub(lambda match: match[1], _OWN_FOLDER.sub(script_folder, text))
    for name, value in _ASSIGNED.findall(text)[:_MOST_VARIABLES]:
        text = text.replace(f"${{{name}}}", value).replace(f"${name}/", f"{value}/")
    return text


def _commands_of_python(text: str) -> list[str]:
    """Return the commands that a Python script starts with texts that are written in it."""
    commands = []
    for match in _STARTED_BY_PYTHON.finditer(text.replace("sys.executable", "'python3'")):
        words = _QUOTED.findall(match[1])
        commands.append(shlex.join(words) if match[1].startswith("[") else " ".join(words))
    return commands
