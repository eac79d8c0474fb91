"""From gates and assertions to the commands that they are about."""

from __future__ import annotations

import pytest

from evaluators.model import Event
from tests.builders import make_trial
from tests.shell_events import shell
from tests.trial_parts import make_command, make_transcript
from tests.web.results.trials.cited import LINK, cited, gate, with_commands
from tests.web.results.trials.pages import page

pytestmark = pytest.mark.one_database


@pytest.mark.parametrize(
    ("score", "words", "addresses"),
    [
        (gate("file_exists", detail={"path": "out/infra.json"}), "named infra.json in", ["#c3", "#c4"]),
        (gate("command_json_path", detail={"command": "cat infra.json"}), "named infra.json in", ["#c3", "#c4"]),
        (gate("file_exists", detail={"path": "fra.json"}), "no command named fra.json", []),
    ],
    ids=["a file", "a file of a command", "a file that nobody names"],
)  # fmt: skip
def test_a_failed_gate_leads_to_the_commands_it_is_about(signed_in, run, score, words, addresses):
    gates = page(signed_in(), with_commands(run, scores=[score])).region("Gates")
    assert words in gates
    assert cited(gates, words) == addresses


def fact(shown, name):
    """Return what the first failed gate expected or found."""
    return shown.region("Gates").fact(name)


def test_the_number_of_failed_commands_leads_to_them(signed_in, run):
    score = gate("no_transcript_errors", detail={"expected": 0, "actual": 2})
    text = page(signed_in(), with_commands(run, scores=[score]))
    assert fact(text, "Expected").text == "0 failed commands"
    assert fact(text, "Actual").text == "2 failed: command 2 command 3"
    assert fact(text, "Actual").addresses == ["#c2", "#c3"]
    assert [each.name for each in text.all(".cite")].count(LINK.format(2)) == 1


def run_after_run(run, *lines, detail):
    """Return a trial with these commands, the last but one of which failed, and a gate that failed."""
    trial = make_trial(run, outcome="fail", scores=[gate("command_json_path", detail=detail)])
    events = [
        event
        for n, line in enumerate(lines)
        for event in shell(line, exit_code=int(n == len(lines) - 2), number=n)
    ]
    make_transcript(trial, events)
    return trial


FOUND = {"expected": "len == 12", "actual": '[{"id": 31}]'}


@pytest.mark.parametrize(
    ("lines", "source"),
    [
        (("tool export --file infra.json", "tool export --file infra.json --all", "jq length infra.json"), 1),
        (("cd shop && ./tool dump > infra.json", "ls", "cat a.json | /usr/bin/head infra.json"), 1),
        (("cat a.json > infra.json", "ls", "ls"), 1),
        (("ls", "tool export --file infra.json", "cat infra.json"), None),
        (("ls", "ls", "cat infra.json; echo tool"), None),
    ],
    ids=["the last that worked", "a redirection", "a reader's redirection", "it failed", "only read"],
)
def test_what_was_found_leads_to_the_command_that_made_it(signed_in, run, lines, source):
    trial = run_after_run(run, *lines, detail={"command": "cat infra.json", **FOUND})
    actual = fact(page(signed_in(), trial), "Actual")
    assert actual.addresses == ([f"#c{source}"] if source else [])
    assert '[{"id": 31}]' in actual


def test_the_command_of_a_gate_leads_to_where_the_agent_gave_it(signed_in, run):
    lines = ("tool list --json", "tool list", "tool list --json")
    trial = run_after_run(run, *lines, detail={"command": "tool list --json", **FOUND})
    text = page(signed_in(), trial)
    assert fact(text, "Actual").addresses == ["#c3"]
    assert cited(text, "the same command in") == ["#c1", "#c3"]


def test_a_command_is_linked_once(signed_in, run):
    trial = run_after_run(run, "tool list", "ls", detail={"command": "tool list", **FOUND})
    trial.transcript.delete()
    make_transcript(trial, shell("tool list"))
    text = page(signed_in(), trial)
    assert fact(text, "Actual").addresses == ["#c1"]
    assert "the same command in" not in text


def test_a_gate_without_a_finding_shows_what_its_command_printed(signed_in, run):
    printed = gate("command_output_contains", detail={"command": "x", "expected": "a", "stdout": "b <c>\n"})
    silent = gate("command_output_contains", detail={"command": "x", "expected": "a", "stdout": ""})
    nothing = gate("file_matches", detail={"path": "a.txt", "expected": "a", "actual": None})
    client = signed_in()
    for score, actual in ((printed, "b <c>"), (silent, "no output"), (nothing, None)):
        gates = page(client, make_trial(run, outcome="fail", scores=[score])).region("Gates")
        assert gates.facts.get("Actual") == actual


def test_gates_without_failed_commands_have_no_link(signed_in, run):
    scores = [gate("file_exists", passed=True, detail={"path": "infra.json"}), gate("script", detail={})]
    gates = page(signed_in(), with_commands(run, scores=scores)).region("Gates")
    assert gates.all(".cite") == []


def test_an_assertion_leads_to_the_calls_it_names(signed_in, run):
    def assertion(name, failure):
        return {"layer": "assertions", "name": name, "passed": False, "detail": {"failures": [failure]}}

    names = ("find", "delete", "delete")
    trial = make_trial(
        run,
        outcome="fail",
        scores=[assertion("toolsNotCalled", "delete was called"), assertion("noToolErrors", "delete failed")],
    )
    events = [Event("tool_call", id=str(n), name=name, input={}) for n, name in enumerate(names)]
    make_transcript(trial, [*events, Event("tool_result", id="2", success=False)])
    for n, name in enumerate(names):
        make_command(trial, n, f"{name} {{}}", subcommand=name, failed=n == 2, event=n)
    failed = page(signed_in(), trial).region("Gates").all("li")
    assert [each.addresses for each in failed] == [["#c2", "#c3"], ["#c3"]]
