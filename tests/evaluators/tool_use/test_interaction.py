from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.model import Event, FoundCommand, Transcript
from evaluators.tool_use.interaction import RATES, Interaction, analyse, compute_metrics, score_interaction
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import number_commands
from tests.evaluators.samples import events, shell_call

TOOL = Tool(binary="t")


def seen(*commands: tuple[str, int | None]) -> Interaction:
    found = [
        FoundCommand(
            f"t {sub}", sub, code, failed=sub != "help" and code not in (None, 0), help=sub == "help"
        )
        for sub, code in commands
    ]
    return compute_metrics(number_commands((one, None) for one in found), source="events", completed=True)


def analysed(*lines: tuple[str, int | None], tool: Tool | None = TOOL) -> Interaction:
    return analyse(events(*lines), tool, completed=True)


def from_text(text: str, tool: Tool = TOOL) -> list[tuple[str | None, int | None]]:
    found = analyse(Transcript(source="transcript", text=text), tool, completed=True)
    return [(command.subcommand, command.exit_code) for command in found.commands]


@pytest.mark.spec("llm-tool-test", "Error, retry and help counts, iteration ratio")
def test_it_counts() -> None:
    found = seen(("add", 1), ("help", 0), ("add", 0), ("add", 0), ("list", None))
    assert (found.total_commands, found.unique_commands, found.error_count, found.help_seeking) == (
        5,
        3,
        1,
        1,
    )
    assert (found.error_rate, found.retry_rate, found.iteration_ratio) == (0.25, 0.4, 0.6)
    assert (found.known, found.estimated, found.ends) == (4, 0, "reported")
    assert (found.retry_count, found.exact_repeats, found.retries_after_failure, found.unknown_exit) == (
        2,
        2,
        1,
        1,
    )
    assert found.first_try_success_rate == 0.5


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        pytest.param([("a", 1), ("a", 0)], 0.0, id="a retry isn't a first try"),
        pytest.param([("a", 0), ("b", 1), ("c", 0), ("a", 0)], 0.75, id="another's failure does not matter"),
        pytest.param([("a", 1), ("a", 0), ("a", 0)], 1 / 3, id="success clears the failure"),
        pytest.param([("a", 1), ("a", None), ("a", 0)], 0.0, id="unknown clears nothing"),
        pytest.param([("a", None), ("a", 0)], 1.0, id="unknown isn't a failure"),
        pytest.param([("a", None)], None, id="nothing is known"),
        pytest.param([("a", 1), ("help", 0), ("a", 0)], 1 / 3, id="help clears nothing"),
        pytest.param([("help", 2), ("help", 0)], 1.0, id="help never fails"),
    ],
)
@pytest.mark.spec("llm-tool-test", "First-try success")
def test_first_tries(commands: list[tuple[str, int | None]], expected: float | None) -> None:
    assert seen(*commands).first_try_success_rate == pytest.approx(expected)


@pytest.mark.spec("llm-tool-test", "Subcommands by the pattern's group")
def test_without_a_subcommand_the_line_is_the_key() -> None:
    found = analysed(("t add x", 1), ("t add y", 0), ("t add x", 0), tool=Tool(command_pattern=r"t\s"))
    assert found.retries_after_failure == 1
    assert found.subcommands == ()


def test_a_retry_names_the_failure_it_follows() -> None:
    found = analysed(("t add", 1), ("t list", 0), ("t add x", 2), ("t add y", 0), ("t add z", 0))
    assert [command.retry_of for command in found.commands] == [None, None, 0, 2, None]


@pytest.mark.spec("llm-tool-test", "Subcommands by the pattern's group")
def test_it_lists_subcommands_with_their_helps() -> None:
    found = analysed(
        ("t add", 1), ("t add --help", 0), ("t help list", 0), ("t --help", 0), ("t add x", None)
    )
    assert found.help_seeking == 3
    assert [command.subcommand for command in found.commands] == ["add", "help", "help", "help", "add"]
    add, listing = found.subcommands
    assert (add.name, add.calls, add.errors, add.first_tries, add.helps) == ("add", 2, 1, 0, 1)
    assert (add.retries_after_failure, add.unknown) == (1, 1)
    assert (listing.name, listing.calls, listing.helps) == ("list", 0, 1)


def test_a_real_line_of_codex() -> None:
    found = analysed(
        ("/bin/bash -lc 'cat README.md | head -3 && ./t list'", 0), ("/bin/bash -lc './t creat \"x y\"'", 1)
    )
    assert [(one.line, one.subcommand, one.exit_code) for one in found.commands] == [
        ("t list", "list", 0),
        ("t creat 'x y'", "creat", 1),
    ]


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        (r"t\s+(\S+)", "./t add", "add"),
        (r"^t\s+(\S+)", "cd x && sudo t add", "add"),
        (r"\./t\s+(\S+)", "./t add", "add"),
        (r"(t)\s+(\S+)", "t add", "add"),
        (r"t\s+(?P<sub>\S+) (\S+)", "t add x", "add"),
    ],
)
@pytest.mark.spec("llm-tool-test", "The command pattern, per scenario or for all")
def test_a_pattern_matches_the_unwrapped_line(pattern: str, line: str, expected: str) -> None:
    (command,) = analysed((line, 0), tool=Tool(binary="other", command_pattern=pattern)).commands
    assert command.subcommand == expected


def test_the_binary_may_be_several_words() -> None:
    found = analysed(("python -m tasks add", 0), ("python x.py", 0), tool=Tool(binary="python -m tasks"))
    assert [command.subcommand for command in found.commands] == ["add"]


def test_the_program_alone_is_a_command() -> None:
    assert [command.subcommand for command in analysed(("./t", 0)).commands] == [None]


@pytest.mark.spec("llm-tool-test", "Structured events come first")
def test_events_are_preferred_over_text() -> None:
    transcript = msgspec.structs.replace(events(("t add", 3)), text="t list\nt list")
    found = analyse(transcript, TOOL, completed=True)
    assert (found.source, found.total_commands, found.error_count) == ("events", 1, 1)


def test_text_is_read_if_events_have_no_call() -> None:
    transcript = Transcript(events=(Event("message", text="hi"),), source="events", text="t list")
    found = analyse(transcript, TOOL, completed=True)
    assert (found.source, found.total_commands) == ("transcript", 1)


def test_without_a_tool_every_call_is_a_command() -> None:
    transcript = Transcript(
        events=(
            Event("tool_call", id="1", name="search", input={"q": "a", "n": 1}),
            Event("tool_call", id="2", name="search", input={"n": 1, "q": "a"}),
            Event("tool_result", id="2", success=True),
            Event("tool_result", id="1", success=False),
            Event("tool_call", id="3", name="open"),
            Event("error", id="3", text="no"),
            Event("tool_call", id="4", name="open"),
            Event("tool_result", id="4", not_run="denied"),
        ),
        source="trace",
    )
    found = analyse(transcript, None, completed=True)
    assert [(one.subcommand, one.failed) for one in found.commands] == [
        ("search", True),
        ("search", False),
        ("open", True),
    ]
    assert (found.unique_commands, found.source, found.not_run) == (2, "trace", 1)


def test_with_a_tool_other_calls_never_stand_in_for_its_commands() -> None:
    events_ = (Event("tool_call", id="1", name="Read"), Event("tool_result", id="1", success=False))
    found = analyse(Transcript(events_, "stream"), TOOL, completed=True)
    assert (found.available, found.total_commands, found.error_count) == (False, 0, 0)


def test_a_call_that_never_ran_is_counted_apart() -> None:
    transcript = Transcript(
        (
            Event("tool_call", id="1", command="t add && t list"),
            Event("tool_result", id="1", output="Permission denied by a rule", not_run="denied"),
            Event("tool_call", id="2", command="ls"),
            Event("tool_result", id="2", not_run="denied"),
            *shell_call("t add"),
        ),
        "stream",
    )
    found = analyse(transcript, TOOL, completed=True)
    assert (found.total_commands, found.error_count, found.not_run) == (1, 0, 1)


def test_commands_that_only_name_the_tool_are_counted_apart() -> None:
    found = analysed(
        ("mise run t add", 0), ("echo ./t x", 0), ("command -v t", 0), ("ls nott", 0), ("t add", 0)
    )
    assert (found.total_commands, found.mentioned) == (1, 3)


def test_what_certainly_did_not_run_is_no_command() -> None:
    transcript = Transcript(
        (
            Event("tool_call", id="1", command="cd /nope && t list"),
            Event(
                "tool_result",
                id="1",
                output="bash: line 1: cd: /nope: No such file or directory",
                exit_code=1,
            ),
            *shell_call("t list"),
        ),
        "stream",
    )
    found = analyse(transcript, TOOL, completed=True)
    assert (found.total_commands, found.error_count, found.error_rate) == (1, 0, 0.0)


@pytest.mark.parametrize(
    ("line", "output", "expected"),
    [
        ("t add 2>&1 | tail -2", "error: unknown flag", (None, "unknown", True)),
        ("t add 2>&1 | tail -2", "t: no note 'x' found: not found", (None, "unknown", True)),
        ("t add | tail -2", "usage: t add X", (None, "unknown", True)),
        ("t --help | head", "usage: t add X", (None, "unknown", False)),
        ("t add | tail -2", "added\n0 errors", (None, "unknown", False)),
        ("t add 2>/dev/null | tail -2", "error: of another", (None, "unknown", False)),
        ("t add | t list | tail", "error: of one", (None, "unknown", False)),
        ("t add; echo exit: $?", "error: no\nexit: 2", (2, "reported", False)),
        ("t add; t list; echo exit: $?", "error: no\nexit: 2", (None, "unknown", False)),
    ],
    ids=["error", "after the name", "usage", "help", "no errors", "hidden", "two", "stated", "another's"],
)
def test_an_error_message_is_no_end(line: str, output: str, expected: tuple[int | None, str, bool]) -> None:
    call = (
        Event("tool_call", id="1", command=line),
        Event("tool_result", id="1", output=output, exit_code=0),
    )
    found = analyse(Transcript(call, "stream"), TOOL, completed=True)
    command = found.commands[0]
    assert (command.exit_code, command.end, command.printed_error) == expected
    assert (found.printed_errors, found.estimated) == ((0,) if expected[2] else (), 0)


@pytest.mark.parametrize(("name", "expected"), [("Bash", 1), ("execute_bash", 2)])
def test_only_calls_that_share_a_shell_share_its_functions(name: str, expected: int) -> None:
    lines = ("f() { t add; }; f", "f")
    shell = tuple(Event("tool_call", str(n), name, line) for n, line in enumerate(lines))
    assert analyse(Transcript(shell, "stream"), TOOL, completed=True).total_commands == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("devbox run mt list", "list"),
        ("npx mt list", "list"),
        ("echo ./mt list", None),
        ("printf 'mt list'", None),
        ("grep -c mt ./mt", None),
        ("rg mt src", None),
        ("git commit -m 'mt list'", None),
        ("git commit -m 'mt x' && mt list", "list"),
        ("mt add 'mt x'", "add"),
        ("cat notes | mt add", "add"),
        ("ssh host 'mt list'", "list"),
        ("mt créer", "créer"),
        ("which mt list", None),
    ],
)
def test_a_pattern_matches_commands_and_not_texts(line: str, expected: str | None) -> None:
    found = analysed((line, 0), tool=Tool(command_pattern=r"mt (\S+)"))
    assert [command.subcommand for command in found.commands] == ([expected] if expected else [])


def test_a_pattern_may_be_for_a_program_that_searches_texts() -> None:
    assert analysed(("rg add src", 0), tool=Tool(command_pattern=r"rg (\S+)")).total_commands == 1


def test_a_binary_with_an_interpreter_matches_as_typed() -> None:
    tool = Tool(binary="python tool.py")
    found = analysed(
        ("python3 ./tool.py add", 0), ("python other.py add", 0), ("./tool.py add", 0), tool=tool
    )
    assert [command.line for command in found.commands] == ["python3 ./tool.py add"]


def test_a_script_may_lack_the_suffix() -> None:
    found = analysed(("node dist/t.js list", 0), ("t.py list", 0), ("sh ./t list", 0))
    assert [command.subcommand for command in found.commands] == ["list", "list"]


def test_other_calls_do_not_count_next_to_shell_lines() -> None:
    transcript = Transcript(
        (Event("tool_call", name="read", input={"path": "x"}), *shell_call("t add")), "stream"
    )
    assert analyse(transcript, TOOL, completed=True).total_commands == 1


@pytest.mark.parametrize("tool", [None, Tool()], ids=["no tool", "a tool without name and pattern"])
def test_without_calls_and_tool_nothing_is_found(tool: Tool | None) -> None:
    found = analyse(Transcript(source="transcript", text="t add"), tool, completed=True)
    assert (found.available, found.source, found.completed) == (False, "none", True)


def test_a_bad_pattern_is_reported() -> None:
    found = analysed(("t add", 0), tool=Tool(command_pattern="t("))
    assert not found.available
    assert "not a regular expression" in found.problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("t add\nExit code: 130", [("add", 130)], id="exit code"),
        pytest.param("t add\nok\nexited with status 2", [("add", 2)], id="exit status"),
        pytest.param("t add\nError: no", [("add", 1)], id="error word"),
        pytest.param("t add\n  FATAL: no", [("add", 1)], id="indented, upper case"),
        pytest.param("t add\nNo errors were found", [("add", 0)], id="no errors"),
        pytest.param("t add\n0 errors", [("add", 0)], id="0 errors"),
        pytest.param("t add\nerrors: 0", [("add", 0)], id="errors 0"),
        pytest.param("t add\nfailed: 0", [("add", 0)], id="failed 0"),
        pytest.param("t add\nthe error is gone", [("add", 0)], id="error within a line"),
        pytest.param("t add\nusage: t add X", [("add", 1)], id="usage"),
        pytest.param("t --help\nusage: t", [("help", 0)], id="usage after help"),
        pytest.param("t add\nt list\nError: x", [("add", 0), ("list", 1)], id="up to the next command"),
        pytest.param("t add" + "\nok" * 20 + "\nExit code: 3", [("add", 0)], id="no more than 20 lines"),
        pytest.param("t add" + "\nok" * 19 + "\nExit code: 3", [("add", 3)], id="the 20th line"),
        pytest.param("$ t add && t list\nExit code: 1", [("add", None), ("list", 1)], id="two on a line"),
        pytest.param(
            "\x1b[32m$ t add\x1b[0m\r\nexit code 4\r\n", [("add", 4)], id="colours and carriage returns"
        ),
        pytest.param("at tt add, nott add", [], id="other words"),
    ],
)
@pytest.mark.spec("llm-tool-test", "The transcript as the fallback")
def test_exit_codes_are_sought_in_text(text: str, expected: list[tuple[str | None, int | None]]) -> None:
    assert from_text(text) == expected


def test_a_command_of_a_text_knows_its_line() -> None:
    found = analyse(Transcript(source="transcript", text="hi\nt add\n\nt list"), TOOL, completed=True)
    assert [command.event for command in found.commands] == [1, 3]


def test_a_pattern_without_a_literal_checks_every_line() -> None:
    assert from_text("x add\ny list", Tool(command_pattern=r"^(?:x|y)\s+(\S+)")) == [("add", 0), ("list", 0)]


def test_rates_of_no_commands_are_not_measured() -> None:
    found = {score.name: score.value for score in score_interaction(analysed(("ls", 0)))}
    assert {found[name] for name in RATES} == {None}
    assert (found["total_commands"], found["completed"]) == (0.0, 1.0)


@pytest.mark.spec("llm-tool-test", "Interaction informs and never decides")
def test_scores_inform_and_never_decide() -> None:
    found = tuple(score_interaction(analysed(("t add", 1))))
    assert {score.passed for score in found} == {None}
    assert next(score.value for score in found if score.name == "error_rate") == 1.0


@pytest.mark.spec("llm-tool-test", "The metrics as data")
def test_its_json_leaves_the_commands_out() -> None:
    fields = analysed(("t add", 0)).as_json()
    assert "commands" not in fields
    assert fields["subcommands"][0]["name"] == "add"


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "help"]), st.sampled_from([0, 1, None])), max_size=12))
def test_metrics_are_consistent(commands: list[tuple[str, int | None]]) -> None:
    found = seen(*commands)
    assert found.available is bool(commands)
    assert found.total_commands == len(commands)
    rates = [getattr(found, rate) for rate in RATES]
    assert all(0.0 <= rate <= 1.0 for rate in rates if rate is not None)
    assert (None in rates) is bool(commands and not found.known)
    assert found.retry_rate + found.iteration_ratio == pytest.approx(1.0 if commands else 0.0)
    assert (found.first_try_success_rate or 0) + (found.error_rate or 0) <= 1.0 + 1e-9
    assert sum(sub.calls for sub in found.subcommands) == found.total_commands - found.help_seeking
