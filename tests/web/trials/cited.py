"""Trials whose commands are cited, and the citations that a page draws."""

from __future__ import annotations

import re

from tests.builders import make_trial
from tests.trial_parts import make_command, make_transcript, shell

LINK = '<a class="cite" href="#c{0}"><span class="visually-hidden">command </span>{0}</a>'


def gate(name, **changes):
    """Return the score of a gate that failed."""
    return {"layer": "gates", "name": name, "value": 0.0, "passed": False, "message": "No.", **changes}


def with_commands(run, **changes):
    """Return a trial with four commands, of which the second and the third failed."""
    trial = make_trial(run, outcome="fail", **changes)
    lines = [
        ("cat AGENTS.md", "Use --format.", 0),
        ("tool list --output-format json", "error: unexpected argument '--output-format' found", 2),
        ("tool export --file infra.json", "no such project", 1),
        ("jq length infra.json", "14", 0),
    ]
    make_transcript(
        trial, [event for n, (line, out, code) in enumerate(lines) for event in shell(line, out, code, n)]
    )
    for n, (line, _, code) in enumerate(lines[1:3]):
        make_command(trial, n, line, exit_code=code, failed=True, event=2 * n + 2)
    return trial


def cited(text, words):
    """Return the addresses of the commands that are linked behind these words."""
    part = text.partition(words)[2].partition("</p>")[0].partition("</div>")[0]
    return re.findall(r'class="cite" href="([^"]+)"', part)
