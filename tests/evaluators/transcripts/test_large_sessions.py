"""Large session files are read with little memory, measured in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.session_files import STEPS, claude, codex
from tests.source_imports import ROOT

OUTPUT = "Жы" * 10_000
"""Printed by other commands: 40 kB in the file, as much in memory."""
READ = """
import json, resource, sys
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.sessions import IMPORTERS, UnreadableSession, parse_session_file
from evaluators.transcripts.sessions.kept import keep_session
from evaluators.transcripts.sessions.session import ToolOnly

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

tool, before = Tool(binary="taskmgr"), peak()
with open(sys.argv[1], "rb") as file:
    try:
        agent, sessions, _ = parse_session_file(file, IMPORTERS, ToolOnly(tool))
        kept = [keep_session(each, tool, agent=agent, sha256="0", file="s").kept for each in sessions]
        found = [[len(each.commands), each.failed, list(each.errors.values())] for each in kept]
    except UnreadableSession as error:
        found = str(error)
print(json.dumps([found, peak() - before]))
"""


def read_apart(file: Path) -> tuple[object, int]:
    """Return what is found in a file, and by how many bytes reading it raised the peak of memory."""
    done = subprocess.run([sys.executable, "-c", READ, file], cwd=ROOT, capture_output=True, check=True)
    found, grown = json.loads(done.stdout)
    return found, grown


@pytest.mark.parametrize("make", [claude, codex])
def test_what_other_commands_print_is_not_kept_in_memory(make: type, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(make(steps=[*STEPS, *[("cat big.txt", 0, OUTPUT)] * 500]))
    found, grown = read_apart(file)
    assert found == [[5, 1, ["no such option: --fmt"]]]
    assert grown * 4 < 500 * len(OUTPUT.encode()) < file.stat().st_size


@pytest.mark.parametrize("begin", [b'{"a": "', b"[\n{"])
def test_a_document_that_is_too_large_is_refused_before_it_is_read(begin: bytes, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    with file.open("wb") as opened:
        opened.write(begin)
        opened.truncate(280_000_000)
    found, grown = read_apart(file)
    assert found == "The file is larger than 256 MB. Export fewer sessions into one file."
    assert grown < 200 << 20
