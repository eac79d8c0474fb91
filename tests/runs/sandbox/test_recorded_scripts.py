"""The script of an interpreter is found in its arguments, whatever options it has."""

from __future__ import annotations

import pytest

from runs.sandbox.recording.recognition import script_of

SCRIPTS = {
    ("/bin/dash", "sh run.sh a"): "run.sh",
    ("/bin/bash", "bash -c text a"): "",
    ("/bin/bash", "bash -lc text"): "",
    ("/bin/bash", "bash -eu -o pipefail run.sh"): "run.sh",
    ("/bin/bash", "bash --rcfile f run.sh"): "run.sh",
    ("/bin/bash", "-bash"): "",
    ("/bin/bash", "bash -s a"): "",
    ("/bin/busybox", "sh run.sh"): "run.sh",
    ("/bin/busybox", "grep a"): "",
    ("/usr/bin/python3.11", "python3 -u tool.py -m x"): "tool.py",
    ("/usr/bin/python3.11", "python -c code x"): "",
    ("/usr/bin/python3.11", "python -Wignore -X dev -m pytest x"): "pytest",
    ("/usr/bin/python3.11", "python -ISm tool"): "tool",
    ("/usr/bin/python3.11", "python - x"): "",
    ("/usr/bin/node", "node -r ./a cli.js"): "cli.js",
    ("/usr/bin/node", "node --require ./a --no-warnings cli.js"): "cli.js",
    ("/usr/bin/node", "node -pe 1"): "",
    ("/usr/bin/node", "node --eval 1"): "",
    ("/usr/bin/bun", "bun run cli.ts"): "cli.ts",
    ("/usr/bin/perl", "perl -ne print x"): "",
    ("/usr/bin/perl", "perl -Ilib tool.pl"): "tool.pl",
    ("/usr/bin/ruby3.1", "ruby -- tool.rb"): "tool.rb",
    ("/lib64/ld-linux-x86-64.so.2", "ld.so ./tool x"): "./tool",
    ("/usr/bin/make", "make test"): "",
    ("/usr/bin/git", "git log"): "",
}


@pytest.mark.parametrize(("exe", "line"), SCRIPTS)
def test_the_script_of_an_interpreter(exe: str, line: str) -> None:
    argv = line.split(" ")
    at, _ = script_of(argv, exe)
    assert (argv[at] if at else "") == SCRIPTS[exe, line]
