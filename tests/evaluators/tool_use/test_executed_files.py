"""Which files of a workspace commands execute, however they start them."""

from __future__ import annotations

import pytest

from evaluators.tool_use.executed_files import MAKEFILES, PYTEST_SETTINGS, find_executed

FILES = {
    "check.sh": 'cd "$(dirname "$0")"\nsh tests/inner.sh && ./tool list | grep -q rug order.csv\n',
    "tests/a.sh": 'HERE=$(cd "$(dirname "$0")" && pwd)\n. "$HERE/lib.sh"\nsh "$(dirname "$0")/b.sh"\nX=sub\nsh ${X}/c.sh\n',
    "tests/inner.sh": "sh never-opened.sh\n",
    "Makefile": "include more.mk\n\ntest: order.csv\n\t@sh check.sh \\\n\t  --strict\n\tpython3 -B t.py\n",
    "c.py": "import subprocess, sys, helper\nsubprocess.run([sys.executable, 'h/g.py'])\nos.system('sh q.sh')\n",
    "package.json": '{"scripts": {"test": "node t.js", "lint": "sh lint.sh"}}',
    "run": "#!/usr/bin/env python3\nsubprocess.check_call('sh z.sh', shell=True)\n",
    "odd.json": "{",
}
COMMANDS = {
    "a shell's script": ("sh check.sh strict", {"check.sh", "tests/inner.sh", "tool"}),
    "behind launchers": ("timeout 5 env A=1 bash ./check.sh", {"check.sh", "tests/inner.sh", "tool"}),
    "in a shell line": ("bash -c 'sh tests/inner.sh'", {"tests/inner.sh", "never-opened.sh"}),
    "a program with a path": ("./tool list --json | grep -q rug", {"tool"}),
    "in another folder": ("cd sub && ./run.sh", {"sub/run.sh"}),
    "by the fixture's variable": ('sh "$LLM_TOOL_TEST_FIXTURE_DIR/q.sh"', {"q.sh"}),
    "by its absolute path": ("sh /workspace/q.sh", {"q.sh"}),
    "a sourced file": (". ./env.sh && true", {"env.sh"}),
    "a substitution": ('test "$(sh count.sh)" = 3', {"count.sh"}),
    "a script's own folder and variables": (
        "sh tests/a.sh",
        {"tests/a.sh", "tests/lib.sh", "tests/b.sh", "sub/c.sh"},
    ),
    "python": ("python3 -B c.py", {"c.py", "h/g.py", "q.sh"}),
    "a module": ("python3 -m tool.x", {"tool.x", "tool/x.py", "tool/x/__main__.py"}),
    "by its first line": ("./run", {"run", "z.sh"}),
    "node": ("node a/b.js", {"a/b.js"}),
    "make": ("make test", {*MAKEFILES, "more.mk", "check.sh", "t.py"}),
    "make elsewhere": ("make -C x", {f"x/{name}" for name in MAKEFILES}),
    "make's file": ("make -f Makefile", {"Makefile", "more.mk", "check.sh", "t.py"}),
    "pytest": ("cd sub; pytest -q", {*PYTEST_SETTINGS, *(f"sub/{name}" for name in PYTEST_SETTINGS)}),
    "npm": ("npm test", {"package.json", "t.js"}),
    "npm's script": ("npm run --silent lint", {"package.json", "lint.sh"}),
    "what is only read": ("grep -q rug order.csv && diff a.txt b.txt", set()),
    "outside": ("sh ../x.sh; sh /etc/x.sh; ~/x.sh; sh $UNKNOWN/x.sh", set()),
    "prose": ("))) ' <<", set()),
}


@pytest.mark.parametrize("command,files", COMMANDS.values(), ids=COMMANDS)
def test_it_finds_what_a_command_executes(command: str, files: set[str]) -> None:
    assert find_executed([command], FILES.get, fixture="/workspace").files == files


FOLDERS = {
    "code": ("python3 -c 'import json'", {""}),
    "a script": ("python3 tests/x.py", {"tests"}),
    "a module": ("cd sub && python3.12 -m x", {"sub"}),
    "standard input": ("python3 - < x.py", {""}),
    "isolated": ("python3 -I -c 'import json'", set()),
    "safe": ("python3 -BP tests/x.py", set()),
    "by its first line": ("./run", {""}),
    "in a script": ("sh s.sh", {""}),
    "another language": ("node x.js", set()),
}


@pytest.mark.parametrize("command,folders", FOLDERS.values(), ids=FOLDERS)
def test_it_finds_where_python_looks_first(command: str, folders: set[str]) -> None:
    files = {**FILES, "s.sh": "python3 -c 'import csv'\n"}
    assert find_executed([command], files.get).module_folders == folders


def test_it_finds_what_pytest_collects() -> None:
    assert find_executed(["pytest -q -p no:cacheprovider -k a"], FILES.get).tests == {""}
    assert find_executed(["pytest tests/test_a.py::test_b sub -q"], FILES.get).tests == {
        "tests/test_a.py",
        "sub",
    }


def test_programs_of_the_workspace_count_where_path_leads_to_them() -> None:
    found = find_executed(["sort a && ./x"], FILES.get, fixture="/w", path="/usr/bin:/w/bin:sub")
    assert found.files == {"bin/sort", "sub/sort", "x"}
