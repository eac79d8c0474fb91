"""Small inputs that were counted wrongly in real use, each by what is right."""

from __future__ import annotations

import contextlib
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from runs.models import ImportedSession, Run, SearchEntry
from tests.commands.calling import call

CASES = Path(__file__).parents[1] / "files/cases"
pytestmark = pytest.mark.django_db


def graded(case: str) -> dict[str, Any]:
    """Return the trial of a `grade` request; its exit code says whether it passed."""
    out = StringIO()
    with contextlib.suppress(SystemExit):
        call_command("grade", str(CASES / case), "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def figures(trial: dict[str, Any], *names: str) -> list[Any]:
    return [trial["interaction"][name] for name in names]


def test_a_session_without_the_tool_is_not_imported(tmp_path: Path) -> None:
    called = call("import_sessions", str(CASES / "01/session.jsonl"), "--tool", "mytool")
    assert "No session with mytool found. 1 session without mytool." in called.out + called.err
    assert not (Run.objects.exists() or ImportedSession.objects.exists() or SearchEntry.objects.exists())


def test_file_tools_are_no_commands_of_the_tool() -> None:
    trial = graded("01/grade-only-file-tools.json")
    assert figures(trial, "available", "total_commands", "error_count") == [False, 0, 0]
    assert trial["gates"][0]["passed"]


@pytest.mark.parametrize(
    ("case", "expected", "passed"),
    [
        # total, errors, known, estimated, error rate
        ("07/u_tail.json", [4, 0, 0, 0, None], True),
        ("07/u_echo.json", [4, 4, 4, 0, 1.0], False),
        ("07/cd_fail.json", [1, 0, 1, 0, 0.0], True),
        ("07/not.json", [1, 1, 1, 0, 1.0], False),
        ("07/not_found_guard.json", [1, 0, 1, 0, 0.0], True),
    ],
)
def test_hidden_exit_codes_are_no_successes(case: str, expected: list[float], passed: bool) -> None:
    trial = graded(case)
    assert figures(trial, "total_commands", "error_count", "known", "estimated", "error_rate") == expected
    assert trial["gates"][0]["passed"] is passed


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # `?` unknown, `!` unknown and its output has an error message
        ("30/session.jsonl", "add ?, commit 1, checkout ?, pull 128, status ?, list ?, push 1"),
        ("30/other-program.jsonl", "init !"),
        ("32/bias.jsonl", ", ".join(["build ?"] * 9) + ", test !, list 0, list 0"),
        ("32/passing-tests.jsonl", "test !"),
        ("32/other-program.jsonl", "test !, build 0"),
        ("33/claude.jsonl", "add 0, rm !, list 0, rm 3"),
        (
            "37/session.jsonl",
            "commit 0, push 0, pr 0, add ?, commit ?, push 0, commit 0, push 0, pr 0",
        ),
        ("38/session.jsonl", "diff 0, add 0"),
    ],
)
def test_commands_and_ends_of_real_kinds(case: str, expected: str) -> None:
    found = analyse(parse("claude_code", (CASES / case).read_bytes()), Tool(binary="mytool"), completed=True)
    ends = [
        f"{each.subcommand} {'!' if each.printed_error else '?' if each.exit_code is None else each.exit_code}"
        for each in found.commands
    ]
    assert (", ".join(ends), found.estimated) == (expected, 0)


def test_copilots_powershell_is_a_shell() -> None:
    read = parse("copilot_cli", (CASES / "33/copilot.jsonl").read_bytes())
    found = analyse(read, Tool(binary="mytool"), completed=True)
    assert [each.subcommand for each in found.commands] == ["add", "rm", "list", "rm"]


def test_launchers_lead_to_the_tool() -> None:
    out = call("import_sessions", str(CASES / "08"), "--tool", "mytool", "--dry-run").out
    files = len([*(CASES / "08").glob("*.jsonl")])
    assert f"{files} sessions ({files} new)" in out
    assert out.count("(1 command,") == files
