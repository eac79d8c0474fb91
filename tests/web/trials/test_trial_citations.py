"""From gates, assertions and the judge's statements to the commands that they are about."""

from __future__ import annotations

import re

import pytest

from evaluators.model import Event
from tests.builders import make_trial
from tests.trial_parts import make_command, make_judging, make_transcript, shell
from tests.web.trials.pages import HOSTILE, page


def gate(name, **changes):
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


@pytest.mark.parametrize(
    ("score", "words", "addresses"),
    [
        (gate("no_transcript_errors", detail={"expected": 0, "actual": 2}), "failed", ["#c2", "#c3"]),
        (gate("file_exists", detail={"path": "out/infra.json"}), "named infra.json in", ["#c3", "#c4"]),
        (
            gate("command_json_path", detail={"command": "cat infra.json"}),
            "named infra.json in",
            ["#c3", "#c4"],
        ),
        (gate("file_exists", detail={"path": "fra.json"}), "no command named fra.json", []),
    ],
    ids=["failed commands", "a file", "a file of a command", "a file that nobody names"],
)
def test_a_failed_gate_leads_to_the_commands_it_is_about(signed_in, run, score, words, addresses):
    text = page(signed_in(), with_commands(run, scores=[score]))
    gates = text.partition('aria-labelledby="gates"')[2].partition("</section>")[0]
    before = "<span>" if addresses else '<span class="muted">'
    assert before + words in gates
    assert cited(gates, before + words) == addresses


def test_a_gate_that_passed_or_looks_at_no_command_leads_nowhere(signed_in, run):
    scores = [gate("file_exists", passed=True, detail={"path": "infra.json"}), gate("script", detail={})]
    text = page(signed_in(), with_commands(run, scores=scores))
    assert 'class="cite"' not in text.partition('aria-labelledby="gates"')[2].partition("</section>")[0]


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
    told = page(signed_in(), trial).partition('aria-labelledby="gates"')[2].split("<li ")
    assert [cited(each, "<span>calls") for each in told[1:]] == [["#c2", "#c3"], ["#c3"]]


@pytest.mark.parametrize(
    ("statement", "told", "addresses"),
    [
        ("Used the flag `--output-format`.", "in", ["#c2"]),
        ("Used --output-format, which does not exist.", "in", ["#c2"]),
        ("It saw 'no such project' and went on.", "in", ["#c3"]),
        ("Ran “jq length” on infra.json.", "in", ["#c4"]),
        ("Ran `tool frobnicate`.", "! no line found", []),
        ("Did not read the documentation.", "quotes no command", []),
    ],
)
def test_a_statement_of_the_judge_leads_to_the_commands_it_quotes(signed_in, run, statement, told, addresses):
    trial = with_commands(run)
    make_judging(trial, content={"negatives": [statement], "positives": []})
    text = page(signed_in(), trial).partition("<h3>Issues</h3>")[2].partition("</ul>")[0]
    assert told in text
    assert cited(text, "<div") == addresses


def test_nothing_is_cited_where_no_command_is_known(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "infra.json"})])
    make_judging(trial, content={"negatives": ["Ran `tool frobnicate`."]})
    text = page(signed_in(), trial)
    assert "no line found" not in text
    assert "no command named" not in text


def test_a_citation_opens_the_part_that_its_command_is_in(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "infra.json"})])
    events = [event for n in range(250) for event in shell(f"run {n}", number=n)]
    make_transcript(trial, [*events, *shell("cat infra.json", number=250)])
    client = signed_in()
    assert 'href="?part=commands&amp;from=200#c251"' in page(client, trial)
    assert 'href="#c251"' in page(client, trial, "?from=200")
    assert 'href="?part=commands&amp;from=200#c251"' in page(client, trial, "?part=messages")


def test_hostile_statements_and_names_are_cited_as_text(signed_in, run):
    path = f"{HOSTILE}.(*+json"
    trial = with_commands(run, scores=[gate("file_exists", detail={"path": path})])
    make_judging(trial, content={"negatives": [f"Ran `{HOSTILE}`."]})
    text = page(signed_in(), trial)
    assert "<script>alert" not in text
    assert "no line found" in text
