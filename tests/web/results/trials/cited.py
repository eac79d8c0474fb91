"""Trials whose commands are cited, and the citations that a page draws."""

from __future__ import annotations

from tests.builders import make_trial
from tests.shell_events import shell
from tests.trial_parts import make_command, make_transcript

LINK = "command {0}"
"""What a screen reader calls the link to a command."""


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


def cited(page, words):
    """Return the addresses of the commands that are linked in the smallest part with these words."""
    parts = [each for each in page.all("p, dd, li, span, td") if words in each]
    found = [each for each in parts if each.all(".cite")]
    return (
        [each.address for each in min(found, key=lambda each: len(each.text)).all(".cite")] if found else []
    )
