"""How far guidance got in a transcript."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.exposure import ExposedDocument, estimated_tokens, find_quoted_lines, opened_paths
from tests.shell_events import shell

GUIDE = ExposedDocument(
    "AGENTS.md",
    "# Tasks\n\nExport with `taskmgr export --format json FILE`.\n"
    "Never delete the store without a backup of it.\n- short line\n```\ntaskmgr sync --all\n```\n",
)


def ran(*lines: str, message: str = "") -> Transcript:
    events = [Event("message", role="assistant", text=message)] if message else []
    for number, line in enumerate(lines):
        events += shell(line, "", 0, number)
    return Transcript(tuple(events), source="events")


def called(name: str, **given: Any) -> Transcript:
    return Transcript((Event("tool_call", name=name, input=given),), source="events")


@pytest.mark.parametrize(
    ("transcript", "opened"),
    [
        (ran("cat AGENTS.md"), True),
        (ran("cd /work && sed -n 1,20p ./AGENTS.md | head"), True),
        (ran("cat /tmp/x/AGENTS.md"), True),
        (ran("bash -lc 'cat AGENTS.md'"), True),
        (ran("cat OLD-AGENTS.md", "echo AGENTS.md", "git add AGENTS.md"), False),
        (called("Read", file_path="/repo/AGENTS.md"), True),
        (called("Write", file_path="/repo/AGENTS.md"), False),
        (Transcript(), False),
    ],
)
def test_opened_is_a_read_or_a_printing_command(transcript: Transcript, opened: bool) -> None:
    assert opened_paths(["AGENTS.md"], transcript) == (("AGENTS.md",) if opened else ())


@pytest.mark.parametrize(("skill", "opened"), [("export", True), ("plugin:export", True), ("sync", False)])
def test_a_skill_call_opens_its_document(skill: str, opened: bool) -> None:
    path = ".claude/skills/export/SKILL.md"
    assert bool(opened_paths([path], called("Skill", command=skill))) == opened
    assert bool(opened_paths([path], called("activate_skill", skill=skill))) == opened


@pytest.mark.parametrize("tool", ["Skill", "Read"])
def test_a_call_that_failed_opened_nothing(tool: str) -> None:
    path = ".claude/skills/export/SKILL.md"
    call = Event("tool_call", id="1", name=tool, input={"skill": "export", "file_path": path})
    ends = [Event(type="tool_result", id="1", success=success) for success in (True, False)]
    opened = [opened_paths([path], Transcript(events=(call, end))) for end in ends]
    assert opened == [(path,), ()]


@pytest.mark.parametrize(
    ("transcript", "lines"),
    [
        (ran("taskmgr export --format json out.json"), [3]),
        (ran("taskmgr export --format jsonl"), []),
        (ran("true", message="I never delete. Never delete the store without a *backup* of it, so"), [4]),
        (ran("taskmgr sync --all"), [7]),
        (ran(message="short line"), []),
        (Transcript(tuple(shell("ls", "taskmgr sync --all", 0, 1)), source="events"), []),
    ],
)
def test_distinctive_lines_are_quoted(transcript: Transcript, lines: list[int]) -> None:
    assert [each.line for each in find_quoted_lines([GUIDE], transcript)] == lines


def test_what_the_prompt_says_is_not_distinctive() -> None:
    assert find_quoted_lines([GUIDE], ran("taskmgr sync --all"), "Run `taskmgr sync --all` now.") == ()


def test_a_quote_names_its_event() -> None:
    (quote,) = find_quoted_lines([GUIDE], ran("ls", "taskmgr sync --all"))
    assert quote.event == 2


def test_tokens_are_estimated_by_characters() -> None:
    assert [estimated_tokens(text) for text in ("", "abcd", "abcde")] == [0, 1, 2]
