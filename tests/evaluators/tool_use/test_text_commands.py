from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.model import Transcript
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool

TOOL = Tool(binary="mt")


def found(text: str, tool: Tool = TOOL) -> list[tuple[str | None, int | None]]:
    seen = analyse(Transcript(source="transcript", text=text), tool, completed=True)
    assert all(command.end in ("estimated", "unknown") for command in seen.commands)
    return [(command.subcommand, command.exit_code) for command in seen.commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("$ mt add x\nadded", [("add", 0)], id="prompt"),
        pytest.param("me@box:~$ mt add x\nexit status 2", [("add", 2)], id="user's prompt"),
        pytest.param("+ mt add x\n", [("add", 0)], id="trace of a shell"),
        pytest.param("Bash(mt add x)\n", [("add", 0)], id="call"),
        pytest.param("● Bash(mt add x)\n  ⎿ Error: no", [("add", 0)], id="call with a bullet"),
        pytest.param("Running: mt add x\n", [("add", 0)], id="running"),
        pytest.param("mt add x\nok", [("add", 0)], id="a line of its own"),
        pytest.param("cd notes && mt add x", [("add", 0)], id="behind cd"),
        pytest.param("mt: unknown option --x", [], id="error of the tool"),
        pytest.param("mt add: title is missing", [], id="error of a subcommand"),
        pytest.param("I ran mt add x and it worked.", [], id="prose"),
        pytest.param("mt is a note taker.", [], id="prose that begins with the tool"),
        pytest.param("mt add failed with an error.", [], id="a report"),
        pytest.param("mt add|list|show", [], id="synopsis"),
        pytest.param("mt add <title> [--tag TAG]", [], id="placeholders"),
        pytest.param("mt add      Add a note", [], id="columns of a help text"),
        pytest.param("mt 1.2.3", [], id="version"),
        pytest.param("Usage:\n  mt add x\n  mt list", [], id="below usage"),
        pytest.param("usage: mt add x", [], id="usage"),
        pytest.param("```sh\nmt add x\n```\nDo this.", [], id="a fenced proposal"),
        pytest.param("```sh\nmt add x\n```\nexit code: 2", [("add", 2)], id="a fence with an end"),
        pytest.param("```sh\nmt add x\nadded 1\n```", [("add", 0)], id="a fence with output"),
        pytest.param("```sh\nmt add x\nmt list\n```\nRun them.", [], id="a fenced list is a proposal"),
        pytest.param("```sh\ncd a\nmt add x\ngit add .\n```\n", [], id="a fenced script is a proposal"),
        pytest.param("```sh\nmt add x\n```\nFailed with exit code 2", [("add", 2)], id="a fence that failed"),
        pytest.param(
            "```sh\nmt add x\n```\n[Command exited with code 2]", [("add", 2)], id="a fence that exited"
        ),
        pytest.param("I'd run:\n\nmt add x\nmt list\n\nShall I?", [], id="a list is a proposal"),
        pytest.param("mt add x\nmt list\n1 x\n", [("add", 0), ("list", 0)], id="a list with output"),
        pytest.param("mt add x\nRun it? y\nRunning mt add x\nadded", [("add", None)], id="said to run"),
        pytest.param("Running mt add x\nexit code: 2", [("add", 2)], id="said to run, with an end"),
        pytest.param("```\n$ mt add x\n```", [("add", 0)], id="a fence with a prompt"),
        pytest.param("- mt add x", [], id="a list"),
        pytest.param("$ mt add x\nmt: no note 'x'\n", [("add", 0)], id="an unclear message"),
        pytest.param("$ mt add x\nmt: invalid id\n", [("add", 1)], id="after the name and a colon"),
        pytest.param("$ mt add x\nmt: note 7 not found\n", [("add", 1)], id="not found"),
        pytest.param("$ mt add x\nunknown flag --title\n", [("add", 1)], id="unknown"),
        pytest.param("$ mt add x\nFailed with exit code 3\n", [("add", 3)], id="failed with a code"),
        pytest.param("$ mt add x\n[Command exited with code 4]\n", [("add", 4)], id="exited with a code"),
        pytest.param("$ mt add x && mt list\nexit code: 1", [("add", None), ("list", 1)], id="two on a line"),
    ],
)
@pytest.mark.spec("llm-tool-test", "The transcript as the fallback")
def test_text_is_read_with_care(text: str, expected: list[tuple[str | None, int | None]]) -> None:
    assert found(text) == expected


SESSION = """I'll use mt to add the notes.

$ mt add --titel A
mt: error: unrecognized arguments: --titel A
usage: mt add [-h] --title TITLE
exit code: 2
$ mt add --title A
mt add: stored note 1
$ mt show 9
mt: error: no such note
usage: mt show [-h] id
  mt show 3
  mt show --all
(exit status 2)
$ mt check
mt check: found 1 problem
FAILED: note 1 has no tag

All done. mt show failed because the note was missing.
"""


def test_errors_and_usage_of_the_tool_are_no_commands() -> None:
    """Of four commands, the tool's messages and usage texts once made eight that ended well."""
    assert found(SESSION) == [("add", 2), ("add", 0), ("show", 2), ("check", 1)]


def test_ends_of_text_are_estimated() -> None:
    seen = analyse(Transcript(source="transcript", text="$ mt add x\n$ mt list"), TOOL, completed=True)
    assert (seen.ends, seen.known, seen.estimated, seen.error_rate) == ("estimated", 2, 2, 0.0)


def test_a_pattern_is_sought_in_json_of_an_unknown_form() -> None:
    line = '{"type":"tool_use","part":{"input":{"command":"mt add A"}}}'
    assert found(line, Tool(command_pattern=r"mt\s+(\w+)")) == [("add", 0)]
    assert found(line) == []


AIDER = Path(__file__).parents[2] / "files/programs"


@pytest.mark.parametrize(("name", "ran"), [("aider-nothing-ran", 0), ("aider-all-ran", 6), ("aider-raw", 6)])
def test_what_aider_proposes_is_no_call(name: str, ran: int) -> None:
    text = (AIDER / f"{name}.txt").read_text()
    seen = analyse(Transcript(source="transcript", text=text), TOOL, completed=True)
    # Aider prints no exit codes.
    assert (seen.total_commands, seen.unknown_exit, seen.error_count) == (ran, ran, 0)
    assert seen.first_try_success_rate is None and seen.available is bool(ran)
    assert [each.line for each in seen.commands][:3] == ["mt add a", "mt --help", "mt add a --tag t"][:ran]


def test_aider_that_runs_nothing_is_read_as_such_for_one_command() -> None:
    text = "Aider v0.86.2\n\n mt add a\n\nTokens: 1 sent.\n\nmt add a\n"
    assert found(text) == []
