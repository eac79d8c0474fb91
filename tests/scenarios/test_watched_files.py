"""Which files of a workspace are watched for the commands after an agent, however these start them."""

from __future__ import annotations

import pytest

from evaluators.tool_use.tool import Tool
from scenarios.watched_files import WatchedNames

PACKAGE = b'{"scripts": {"test": "npm run unit && node test.js", "unit": "jest", "start": "node server.js"}}'
FILES = {
    "check.sh": b"sh inner.sh",
    "inner.sh": b"exit 1",
    "check.awk": b"",
    "check.py": b"",
    "judge": b"#!/bin/sh",
    "bare": b"exit 1",
    "order.csv": b"",
    "test.js": b"",
    "server.js": b"",
    "package.json": PACKAGE,
    "sub/package.json": b'{"scripts": {"test": "node t.js"}}',
    "sub/t.js": b"",
    ".npmrc": b"",
    "node_modules/.bin/jest": b"#!",
    "node_modules/.bin/other": b"#!",
    "node_modules/x/test_x.py": b"",
    "Makefile": b"test:\n\tsh inner.sh",
    "config.mk": b"",
    "sub/GNUmakefile": b"",
    "third/Makefile": b"",
    "pyproject.toml": b"",
    "json.py": b"",
    "json/__init__.py": b"",
    "shop.py": b"",
    "src/types.py": b"",
    "tests/__init__.py": b"",
    "tests/csv.py": b"",
    "tests/test_x.py": b"",
    "tests/deep/conftest.py": b"",
    ".venv/lib/python3.12/site-packages/x.pth": b"",
    ".venv/lib/python3.12/site-packages/sitecustomize.py": b"",
    ".venv/lib/python3.12/site-packages/types.py": b"",
    "weights.pth": b"",
    "mytool": b"#!",
    "lib/mytool/a.txt": b"",
    "vendor/grep": b"",
}
EXECUTABLE = {"node_modules/.bin/jest", "node_modules/.bin/other", "vendor/grep"}
PYTHON = {"json.py", "json/__init__.py", "tests/csv.py", "tests/test_x.py", "tests/deep/conftest.py"}
PYTHON |= {"pyproject.toml"}
NPM = {"package.json", ".npmrc", "test.js", "node_modules/.bin/jest"}
# fmt: off
COMMANDS: dict[str, tuple[str, set[str]]] = {
    "a script": ("sh check.sh strict", {"check.sh"}),
    "awk": ("awk -f check.awk order.csv", {"check.awk"}),
    "eval": ('eval "$(cat check.sh)"', {"check.sh"}),
    "a loop": ("for f in check.sh; do sh $f || exit 1; done", {"check.sh"}),
    "a pipe": ("cat check.sh | sh", {"check.sh"}),
    "a substitution as folder": ('sh "$(pwd)/check.sh"', {"check.sh"}),
    "a variable as folder": ('sh "${LLM_TOOL_TEST_FIXTURE_DIR}/sub/t.js"', {"sub/t.js"}),
    "an absolute path": ("node /workspace/sub/t.js", {"sub/t.js"}),
    "standard input": ("sh < check.sh", {"check.sh"}),
    "find": ("find . -name check.sh -exec sh {} +", {"check.sh"}),
    "a pattern": ("sh ./check*.sh", set()),
    "by its first line": ("sh judge", {"judge"}),
    "neither": ("sh bare; wc order.csv", set()),
    "an executable by name": ("grep -q rug order.csv", {"vendor/grep"}),
    "make": ("make test", {"Makefile", "config.mk"}),
    "make elsewhere": ("make -C sub", {"Makefile", "config.mk", "sub/GNUmakefile"}),
    "python": ("python3 -I shop.py", {*PYTHON, "shop.py"}),
    "unittest": ("python3 -m unittest discover -s tests", PYTHON),
    "a module": ("python3.12 -m tests.csv", PYTHON),
    "pytest": ("pytest -q", PYTHON),
    "tox": ("tox -e a", PYTHON),
    "a named folder": ("cd src && python3 -c 'import re'", {*PYTHON, "src/types.py"}),
    "a virtual environment": (".venv/bin/python check.py", {*PYTHON, "check.py", ".venv/lib/python3.12/site-packages/x.pth", ".venv/lib/python3.12/site-packages/sitecustomize.py"}),
    "npm": ("npm test", NPM),
    "another script of npm": ("npm start", {"package.json", ".npmrc", "server.js"}),
    "npm elsewhere": ("cd sub; yarn test", {*NPM, "sub/package.json", "sub/t.js"}),
    "prose": ("))) ' <<", set()),
}
# fmt: on


def find_watched(command: str, tool: Tool | None = None) -> set[str]:
    names = WatchedNames([command], tool, lambda path: FILES.get(path, b""))
    return {*names.find_watched({path: path in EXECUTABLE for path in FILES}, FILES.__getitem__)}


@pytest.mark.parametrize("command,files", COMMANDS.values(), ids=COMMANDS)
def test_scripts_that_a_command_names_and_what_runners_take_are_watched(
    command: str, files: set[str]
) -> None:
    assert find_watched(command) == files


def test_the_tools_own_files_are_watched() -> None:
    assert find_watched("true", Tool(binary="mytool", files=("lib/mytool/**",))) == {
        "mytool",
        "lib/mytool/a.txt",
    }


def test_a_path_of_the_tools_variables_is_a_named_folder() -> None:
    tool = Tool(binary="git", env={"PYTHONPATH": "${LLM_TOOL_TEST_FIXTURE_DIR}/src:${PYTHONPATH}"})
    assert find_watched("python3 -c 'import re'", tool) == {*PYTHON, "src/types.py"}
