"""Small inputs that were counted wrongly in real use, each by what is right."""

from __future__ import annotations

import contextlib
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluators.tool_use.exposure import opened_paths
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from runs.models import CommandRecord, ImportedSession, Run, RunMeasure, SearchEntry
from runs.results.spending import spent_this_month
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
        ("37/session.jsonl", "commit 0, push 0, pr 0, add ?, commit ?, push 0, commit 0, push 0, pr 0"),
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


def import_case(case: str, tool: str = "mytool") -> dict[str, Any]:
    return call("import_sessions", str(CASES / case), "--tool", tool, "--json").document


def test_the_exit_code_of_a_span_is_read() -> None:
    (session,) = import_case("60", "shelf")["sessions"]
    found = [(each["line"], each["exit_code"], each["failed"], each["end"]) for each in session["commands"]]
    assert found == [
        ("shelf add home --txt plants", 2, True, "reported"),
        ("shelf add home --text plants", 0, False, "reported"),
    ]
    transcript = parse("otel", (CASES / "60/spans.json").read_bytes())
    assert opened_paths(("skills/shelf-notes/SKILL.md",), transcript)


@pytest.mark.parametrize(
    ("file", "expected"), [("cache-write", (300, 40, 25)), ("exclusive", (5100, 5000, 0))]
)
def test_the_cache_of_spans_is_read(file: str, expected: tuple[int, int, int]) -> None:
    usage = parse("otel", (CASES / f"39/{file}.json").read_bytes()).usage
    assert usage and (usage.input, usage.cache_read, usage.cache_write) == expected


def test_what_is_only_proposed_is_no_command_of_a_session() -> None:
    called = call("import_sessions", str(CASES / "35"), "--tool", "mytool")
    assert "No session with mytool found. 6 sessions without mytool." in called.err
    assert not Run.objects.exists()


def test_a_stream_without_a_call_is_its_own_answer() -> None:
    trial = graded("35/grade.json")
    assert figures(trial, "source", "total_commands", "error_count") == ["stream", 0, 0]
    assert (trial["gates"][0]["passed"], trial["outcome"]) == (True, "pass")


def test_the_costs_that_sessions_state_are_stored() -> None:
    import_case("31")
    run = Run.objects.get()
    trial = run.trial_set.get()
    assert (trial.cost_usd, run.cost_usd, run.price_source) == (0.25, 0.25, "reported by the agent")
    assert (RunMeasure.objects.get(run=run, scenario=None, measure__name="cost_usd").mean) == 0.25
    assert spent_this_month(run.project_id) == 0.0


def test_copilot_states_exit_codes_in_text() -> None:
    (session,) = import_case("36")["sessions"]
    assert [(each["exit_code"], each["end"]) for each in session["commands"]] == [
        (0, "reported"),
        (3, "reported"),
        (0, "reported"),
        (0, "reported"),
    ]


# fmt: off
FORKS = {
    "claude": (5_000, 50, ["42aaaaaa-0000-4000-8000-00000000000a", "42aaaaaa-0000-4000-8000-00000000000b"]),
    "sidechain": (4_500, 45, ["42cccccc-0000-4000-8000-00000000000c", "42cccccc-0000-4000-8000-00000000000c/subagents/agent-side1"]),
    "codex": (3_500, 40, ["rollout-a", "rollout-b"]),
}
# fmt: on


def tokens_and_calls() -> tuple[int, int, int]:
    runs = list(Run.objects.values_list("tokens_in", "tokens_out"))
    return sum(read for read, _ in runs), sum(written for _, written in runs), CommandRecord.objects.count()


@pytest.mark.parametrize("folder", FORKS)
def test_copied_tokens_count_once(folder: str) -> None:
    import_case(f"34/{folder}")
    assert tokens_and_calls() == (*FORKS[folder][:2], 3)


@pytest.mark.parametrize("folder", FORKS)
def test_copied_tokens_count_once_over_two_imports(folder: str) -> None:
    for file in FORKS[folder][2]:
        import_case(f"34/{folder}/{file}.jsonl")
    assert tokens_and_calls() == (*FORKS[folder][:2], 3)


@pytest.mark.parametrize(("folder", "own"), [("claude", (3_000, 30)), ("codex", (1_500, 20))])
def test_where_the_parent_is_not_kept_its_tokens_are_not_the_forks(folder: str, own: tuple[int, int]) -> None:
    import_case(f"34/{folder}/{FORKS[folder][2][1]}.jsonl")
    assert tokens_and_calls()[:2] == own


def test_a_parent_without_the_tool_keeps_its_tokens(tmp_path: Path) -> None:
    main, side = (Path(f"34/sidechain/{name}.jsonl") for name in FORKS["sidechain"][2])
    for at, name in ((main, "main"), (side, "side")):
        text = (CASES / at).read_text().replace("mytool add", "other add")
        (tmp_path / f"{name}.jsonl").write_text(text)
    call("import_sessions", str(tmp_path), "--tool", "mytool")
    assert tokens_and_calls() == (2_500, 25, 1)


def test_launchers_lead_to_the_tool() -> None:
    out = call("import_sessions", str(CASES / "08"), "--tool", "mytool", "--dry-run").out
    files = len([*(CASES / "08").glob("*.jsonl")])
    assert f"{files} sessions ({files} new)" in out
    assert out.count("(1 command,") == files
