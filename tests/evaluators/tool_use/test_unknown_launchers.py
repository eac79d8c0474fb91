"""Programs that evalhub doesn't know, right before the tool."""

from __future__ import annotations

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.unknown_launchers import count_unknown_launchers, describe_launchers

GIT = Tool(binary="git")


def make_transcript(*lines: str) -> Transcript:
    return Transcript(tuple(Event("tool_call", name="Bash", command=line) for line in lines), "stream")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rtk git status", {"rtk": 1}),
        ("cd x && ~/bin/rtk git log | head", {"rtk": 1}),
        ("rtk git add . && rtk git commit", {"rtk": 2}),
        # known launchers, the tool itself, texts, and words further behind
        ("time git status", {}),
        ("git git", {}),
        ("echo git; which git; apt install git", {}),
        ("rtk --help", {}),
    ],
)
def test_what_stands_right_before_the_tool(line: str, expected: dict[str, int]) -> None:
    assert count_unknown_launchers(make_transcript(line), GIT) == expected


def test_a_pattern_leaves_nothing_unknown() -> None:
    assert not count_unknown_launchers(
        make_transcript("rtk git status"), Tool(binary="git", command_pattern=r"rtk git (\S+)")
    )


def test_the_note_names_program_number_and_pattern() -> None:
    counts = count_unknown_launchers(make_transcript("rtk git a", "rtk git b", "lazy git c"), GIT)
    assert list(describe_launchers(counts, GIT)) == [
        "2 commands have git behind `rtk`, which evalhub doesn't know, and count only if a pattern names them, "
        r"such as `rtk git (\S+)`.",
        "1 command has git behind `lazy`, which evalhub doesn't know, and count only if a pattern names them, "
        r"such as `lazy git (\S+)`.",
    ]
