"""The diagnosis of a run: what was seen, the calls that show it, and what counts as high."""

from __future__ import annotations

from tests.builders import INTERACTION, close, make_run, make_trial
from tests.web.runs.pages import page

CALLED = [
    {"name": "list", "calls": 9, "errors": 0},
    {"name": "export", "calls": 9, "errors": 3},
    {"name": "import a/b", "calls": 9, "errors": 5},
    {"name": "link", "calls": 9, "errors": 1},
    {"name": "move", "calls": 9, "errors": 2},
]


def failing_calls(client, version, pattern, *evidence):
    """Return the links of a finding's failing calls, each with its words."""
    finding = {"pattern": pattern, "sentence": "It guessed.", "evidence": list(evidence)}
    run = make_run(version)
    make_trial(run, detail={"interaction": {**INTERACTION, "subcommands": CALLED}, "diagnosis": [finding]})
    shown = page(client, close(run)).region("Diagnosis")
    links = [each for each in shown.all("a[hx-get]") if each.address == f"{each['hx-get']}#failing"]
    return [(each["hx-get"], each.text) for each in links], shown


def test_errors_link_to_the_most_failing_subcommands(signed_in, version):
    links, text = failing_calls(signed_in(), version, "errors-without-help")
    assert "Errors without help" in text.headings
    assert links == [
        ("?failing=import%20a%2Fb", "5 of import a/b"),
        ("?failing=export", "3 of export"),
        ("?failing=move", "2 of move"),
    ]
    assert "Thresholds: error rate ≥ 25 %, help calls ≥ 3. Only the error rate was exceeded." in text


def test_retries_lead_to_the_failing_calls_of_their_subcommand(signed_in, version):
    sentence = "export: 4 of 9 calls were retries."
    links, text = failing_calls(signed_in(), version, "retries-on-a-command", sentence)
    assert links == [("?failing=export", "3 of export")]
    assert "Shown when at least 2 calls and 30 % of calls are retries." in text


def test_an_unknown_pattern_has_no_links(signed_in, version):
    links, text = failing_calls(signed_in(), version, "of-another-evalhub", "export: 4 of 9.")
    assert (links, "Failing calls" in text, "hresholds" in text) == ([], False, False)
