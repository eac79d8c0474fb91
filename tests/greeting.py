"""A small scenario file of llm-tool-test, with the gates that a test is about."""

from __future__ import annotations

import textwrap

_FILE = """\
name: greet
description: Say hello.
template_folder: repo
target:
  binary: git
  command_pattern: 'git (\\S+)'
task:
  prompt: Say hello.
evaluation:
  gates:
"""
EXISTS = "- type: file_exists\n  path: out.txt\n"
CONTAINS = "- type: file_contains\n  path: out.txt\n  substring: hello\n"
SUCCEEDS = "- type: command_succeeds\n  command: grep -q hello out.txt\n"


def greeting(*gates: str) -> str:
    """Return the file with these gates."""
    return _FILE + textwrap.indent("".join(gates), "    ")
