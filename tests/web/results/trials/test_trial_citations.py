"""From the judge's statements to the commands that they quote, and how citations lead there."""

from __future__ import annotations

import pytest

from runs.results.trial_page.citations import MOST_IN_PROSE, MOST_QUOTED
from tests.builders import make_trial
from tests.shell_events import shell
from tests.trial_parts import make_command, make_judging, make_transcript
from tests.web.results.trials.cited import LINK, cited, gate, with_commands
from tests.web.results.trials.pages import HOSTILE, page

pytestmark = pytest.mark.one_database


def test_a_normalised_command_is_cited_as_typed(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "out.json"})])
    make_transcript(trial, shell("cd shop && ./tool list --all > out.json"))
    make_command(trial, 0, "tool list --all", exit_code=0, event=0)
    make_judging(trial, content={"negatives": ["Ran `./tool list --all` in vain."]})
    text = page(signed_in(), trial)
    assert cited(text, "named out.json in") == ["#c1"]
    (issue,) = text.all("li.is-issue")
    assert issue.addresses == ["#c1"]


@pytest.mark.parametrize(
    ("statement", "citation", "addresses"),
    [
        ("Used the flag `--output-format`.", "in", ["#c2"]),
        ("Used --output-format, which does not exist.", "in", ["#c2"]),
        ("It saw 'no such project' and went on.", "in", ["#c3"]),
        ("Ran “jq length” on infra.json.", "in", ["#c4"]),
        ("Ran `tool frobnicate`.", "! no matching line", []),
        ("Did not read the documentation.", "no command cited", []),
    ],
)
def test_a_judge_statement_links_to_quoted_commands(signed_in, run, statement, citation, addresses):
    trial = with_commands(run)
    make_judging(trial, content={"negatives": [statement], "positives": []})
    (issue,) = page(signed_in(), trial).all("li.is-issue")
    assert citation in issue
    assert issue.addresses == addresses


def test_nothing_is_cited_where_no_command_is_known(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "infra.json"})])
    make_judging(trial, content={"negatives": ["Ran `tool frobnicate`."]})
    text = page(signed_in(), trial)
    assert "no matching line" not in text
    assert "no command named" not in text


def test_a_citation_opens_the_part_that_its_command_is_in(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "infra.json"})])
    events = [event for n in range(250) for event in shell(f"run {n}", number=n)]
    make_transcript(trial, [*events, *shell("cat infra.json", number=250)])
    client = signed_in()
    assert "?part=commands&from=200#c251" in page(client, trial).addresses
    assert "#c251" in page(client, trial, "?from=200").addresses
    assert "?part=commands&from=200#c251" in page(client, trial, "?part=messages").addresses


def test_hostile_statements_and_names_are_cited_as_text(signed_in, run):
    path = f"{HOSTILE}.(*+json"
    trial = with_commands(run, scores=[gate("file_exists", detail={"path": path})])
    make_judging(trial, content={"negatives": [f"Ran `{HOSTILE}`."]})
    text = page(signed_in(), trial)
    assert text.all("script") == []
    assert "no matching line" in text


def reasoning(text):
    """Return the judge's reasoning."""
    return text.region("Judge").all("p")[0]


@pytest.mark.parametrize(
    ("given", "drawn"),
    [
        ("Used `--output-format` twice.", f"Used --output-format {LINK.format(2)} twice."),
        ("Used --output-format=json, too.", f"Used --output-format=json {LINK.format(2)}, too."),
        (
            "It saw “no such project”.\nThen 'jq length'.",
            f"It saw “no such project” {LINK.format(3)}. Then 'jq length' {LINK.format(4)}.",
        ),
        ("`tool export`, `tool export`.", f"tool export {LINK.format(3)}, tool export."),
        ("Ran `tool frobnicate` --now.", "Ran tool frobnicate --now."),
        ("With `j` and `k`.", "With j and k."),
        (f"`tool {'x' * 200} --output-format`.", f"tool {'x' * 200} --output-format."),
        ("It's well-known, and wasn't done.", "It's well-known, and wasn't done."),
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
def test_the_judges_reasoning_leads_to_the_commands_it_quotes(signed_in, run, given, drawn):
    trial = with_commands(run)
    make_judging(trial, content={"reasoning": given, "negatives": [], "positives": []})
    text = page(signed_in(), trial)
    assert reasoning(text).text == drawn
    assert "no matching line" not in text


def test_every_judging_has_its_citations(signed_in, run):
    trial = with_commands(run)
    for command in ("cat AGENTS.md", "jq length"):
        make_judging(trial, content={"reasoning": f"Ran `{command}`."})
    text = page(signed_in(), trial)
    assert f"cat AGENTS.md {LINK.format(1)}" in text
    assert f"jq length {LINK.format(4)}" in text


def test_a_quoted_command_does_not_match_longer_ones(signed_in, run):
    trial = make_trial(run, outcome="fail")
    lines = ("./tool list --all", "./tool list --format json", "./tool list")
    make_transcript(trial, [event for n, line in enumerate(lines) for event in shell(line, number=n)])
    make_command(trial, 0, "tool list", exit_code=0, event=4)
    content = {
        "reasoning": "Only `./tool list` worked.",
        "negatives": ["`tool list` came late.", "Ran `./tool`."],
    }
    make_judging(trial, content=content)
    text = page(signed_in(), trial)
    assert reasoning(text).text == f"Only ./tool list {LINK.format(3)} worked."
    late, ran = text.all("li.is-issue")
    assert (late.addresses, ran.addresses) == (["#c3"], ["#c1", "#c2", "#c3"])


def test_a_reasoning_links_few_commands_of_few_quotations(signed_in, run):
    trial = make_trial(run, outcome="fail")
    make_transcript(trial, [event for n in range(30) for event in shell(f"run it {n:02}", number=n)])
    given = "`run it` " + " ".join(f"`it {n:02}`" for n in range(30))
    make_judging(trial, content={"reasoning": given})
    drawn = reasoning(page(signed_in(), trial))
    assert " ".join(map(LINK.format, (1, 2, 3))) in drawn
    assert len(drawn.addresses) == MOST_IN_PROSE + MOST_QUOTED - 1
    assert drawn.text.endswith("it 29")


@pytest.mark.parametrize(
    "given", [f"`{HOSTILE}` `jq length` ", "“'\"`-", "`jq length`" + "<b> " * 3], ids=range(3)
)
def test_a_hostile_reasoning_of_a_megabyte_stays_text(signed_in, run, given):
    trial = with_commands(run)
    make_judging(trial, content={"reasoning": given * (1_000_000 // len(given))})
    text = page(signed_in(), trial)
    assert text.all("script") == []
    assert reasoning(text).all("b") == []
    assert len(reasoning(text)) < 40_000
    assert reasoning(text).text.endswith(" characters")


def test_a_reasoning_without_commands_stays_unchanged(signed_in, run):
    trial = make_trial(run, outcome="fail")
    make_judging(trial, content={"reasoning": "Ran `tool list` --all."})
    assert reasoning(page(signed_in(), trial)).text == "Ran tool list --all."
