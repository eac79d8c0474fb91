"""From gates, assertions and the judge's statements to the commands that they are about."""

from __future__ import annotations

import re

import pytest

from evaluators.model import Event
from runs.warehouse.citations import MOST_IN_PROSE, MOST_QUOTED
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
        (gate("file_exists", detail={"path": "out/infra.json"}), "named infra.json in", ["#c3", "#c4"]),
        (
            gate("command_json_path", detail={"command": "cat infra.json"}),
            "named infra.json in",
            ["#c3", "#c4"],
        ),
        (gate("file_exists", detail={"path": "fra.json"}), "no command named fra.json", []),
    ],
    ids=["a file", "a file of a command", "a file that nobody names"],
)
def test_a_failed_gate_leads_to_the_commands_it_is_about(signed_in, run, score, words, addresses):
    text = page(signed_in(), with_commands(run, scores=[score]))
    gates = text.partition('aria-labelledby="gates"')[2].partition("</section>")[0]
    before = "<span>" if addresses else '<span class="muted">'
    assert before + words in gates
    assert cited(gates, before + words) == addresses


def row(text, name):
    """Return what the last failed gate says it found."""
    gates = text.partition('aria-labelledby="gates"')[2].partition("</section>")[0]
    return re.sub(r"\s+", " ", gates.partition(f"<dt>{name}</dt>")[2].partition("</dd>")[0]).strip()


def test_the_number_of_failed_commands_leads_to_them(signed_in, run):
    score = gate("no_transcript_errors", detail={"expected": 0, "actual": 2})
    text = page(signed_in(), with_commands(run, scores=[score]))
    assert row(text, "Expected") == "<dd>0 failed commands"
    assert row(text, "Actual").startswith("<dd>2 failed:")
    assert cited(text, "2 failed:") == ["#c2", "#c3"]
    assert text.count(LINK.format(2)) == 1


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
    actual = row(page(signed_in(), trial), "Actual")
    assert re.findall('href="([^"]*)"', actual) == ([f"#c{source}"] if source else [])
    assert "[{&#34;id&#34;: 31}]" in actual


def test_the_command_of_a_gate_leads_to_where_the_agent_gave_it(signed_in, run):
    lines = ("tool list --json", "tool list", "tool list --json")
    trial = run_after_run(run, *lines, detail={"command": "tool list --json", **FOUND})
    text = page(signed_in(), trial)
    assert 'href="#c3"' in row(text, "Actual")
    assert cited(text, "the same command in") == ["#c1", "#c3"]


def test_one_command_is_led_to_once(signed_in, run):
    trial = run_after_run(run, "tool list", "ls", detail={"command": "tool list", **FOUND})
    trial.transcript.delete()
    make_transcript(trial, shell("tool list"))
    text = page(signed_in(), trial)
    assert 'href="#c1"' in row(text, "Actual")
    assert "the same command in" not in text


def test_a_gate_without_a_finding_shows_what_its_command_printed(signed_in, run):
    printed = gate("command_output_contains", detail={"command": "x", "expected": "a", "stdout": "b <c>\n"})
    silent = gate("command_output_contains", detail={"command": "x", "expected": "a", "stdout": ""})
    nothing = gate("file_matches", detail={"path": "a.txt", "expected": "a", "actual": None})
    client = signed_in()
    for score, actual in ((printed, "<dd>b &lt;c&gt;"), (silent, "<dd>no output"), (nothing, "")):
        assert row(page(client, make_trial(run, outcome="fail", scores=[score])), "Actual") == actual


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


def test_what_is_shown_in_its_plain_form_is_found_as_it_was_typed(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "out.json"})])
    make_transcript(trial, shell("cd shop && ./tool list --all > out.json"))
    make_command(trial, 0, "tool list --all", exit_code=0, event=0)
    make_judging(trial, content={"negatives": ["Ran `./tool list --all` in vain."]})
    text = page(signed_in(), trial)
    assert cited(text, "<span>named out.json in") == ["#c1"]
    assert cited(text, "Ran <code>./tool list --all</code> in vain.</p>") == ["#c1"]


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


LINK = '<a class="cite" href="#c{0}"><span class="visually-hidden">command </span>{0}</a>'


def reasoning(text):
    """Return the judge's reasoning as it is drawn."""
    return (
        text.partition('aria-labelledby="judge"')[2]
        .partition("</table>")[2]
        .partition("<p>")[2]
        .partition("</p>")[0]
    )


@pytest.mark.parametrize(
    ("said", "drawn"),
    [
        ("Used `--output-format` twice.", f"Used <code>--output-format</code> {LINK.format(2)} twice."),
        ("Used --output-format=json, too.", f"Used --output-format=json {LINK.format(2)}, too."),
        (
            "It saw “no such project”.\nThen 'jq length'.",
            f"It saw “no such project” {LINK.format(3)}.<br>Then &#x27;jq length&#x27; {LINK.format(4)}.",
        ),
        (
            "`tool export`, `tool export`.",
            f"<code>tool export</code> {LINK.format(3)}, <code>tool export</code>.",
        ),
        ("Ran `tool frobnicate` --now.", "Ran <code>tool frobnicate</code> --now."),
        ("With `j` and `k`.", "With <code>j</code> and <code>k</code>."),
        (f"`tool {'x' * 200} --output-format`.", f"<code>tool {'x' * 200} --output-format</code>."),
        ("It's well-known, and wasn't done.", "It&#x27;s well-known, and wasn&#x27;t done."),
    ],
    ids=[
        "a flag",
        "a flag with a value",
        "lines",
        "once",
        "not found",
        "letters",
        "long code",
        "nothing quoted",
    ],
)
def test_the_judges_reasoning_leads_to_the_commands_it_quotes(signed_in, run, said, drawn):
    trial = with_commands(run)
    make_judging(trial, content={"reasoning": said, "negatives": [], "positives": []})
    text = page(signed_in(), trial)
    assert reasoning(text) == drawn
    assert "no line found" not in text


def test_every_judging_has_its_citations(signed_in, run):
    trial = with_commands(run)
    for command in ("cat AGENTS.md", "jq length"):
        make_judging(trial, content={"reasoning": f"Ran `{command}`."})
    text = page(signed_in(), trial)
    assert f"<code>cat AGENTS.md</code> {LINK.format(1)}" in text
    assert f"<code>jq length</code> {LINK.format(4)}" in text


def test_a_command_that_is_quoted_whole_is_not_taken_for_longer_ones(signed_in, run):
    trial = make_trial(run, outcome="fail")
    lines = ("./tool list --all", "./tool list --format json", "./tool list")
    make_transcript(trial, [event for n, line in enumerate(lines) for event in shell(line, number=n)])
    make_command(trial, 0, "tool list", exit_code=0, event=4)
    said = {
        "reasoning": "Only `./tool list` worked.",
        "negatives": ["`tool list` came late.", "Ran `./tool`."],
    }
    make_judging(trial, content=said)
    text = page(signed_in(), trial)
    assert reasoning(text) == f"Only <code>./tool list</code> {LINK.format(3)} worked."
    assert cited(text, "came late.</p>") == ["#c3"]
    assert cited(text, "Ran <code>./tool</code>.</p>") == ["#c1", "#c2", "#c3"]


def test_a_reasoning_links_few_commands_of_few_quotations(signed_in, run):
    trial = make_trial(run, outcome="fail")
    make_transcript(trial, [event for n in range(30) for event in shell(f"run it {n:02}", number=n)])
    said = "`run it` " + " ".join(f"`it {n:02}`" for n in range(30))
    make_judging(trial, content={"reasoning": said})
    drawn = reasoning(page(signed_in(), trial))
    assert "".join(map(LINK.format, (1, 2, 3))).replace("</a><a", "</a> <a") in drawn
    assert drawn.count('class="cite"') == MOST_IN_PROSE + MOST_QUOTED - 1
    assert drawn.endswith("<code>it 29</code>")


@pytest.mark.parametrize(
    "said", [f"`{HOSTILE}` `jq length` ", "“'\"`-", "`jq length`" + "<b> " * 3], ids=range(3)
)
def test_a_hostile_reasoning_of_a_megabyte_stays_text(signed_in, run, said):
    trial = with_commands(run)
    make_judging(trial, content={"reasoning": said * (1_000_000 // len(said))})
    text = page(signed_in(), trial)
    assert "<script>alert" not in text
    assert "<b>" not in reasoning(text)
    assert len(reasoning(text)) < 40_000
    assert reasoning(text).endswith(" characters</span>")


def test_a_reasoning_without_commands_is_as_it_was_said(signed_in, run):
    trial = make_trial(run, outcome="fail")
    make_judging(trial, content={"reasoning": "Ran `tool list` --all."})
    assert reasoning(page(signed_in(), trial)) == "Ran <code>tool list</code> --all."
