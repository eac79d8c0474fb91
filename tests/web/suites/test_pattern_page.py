"""Trying a command pattern on a page."""

from __future__ import annotations

import pytest

from tests.builders import make_project, make_run, make_suite, make_trial
from tests.shell_events import shell
from tests.trial_parts import make_transcript
from tests.web.screen import main_of, parse

pytestmark = pytest.mark.one_database

TEXT = "$ ship deploy --env prod\nerror: no such option\n$ ship --help\nusage: ship\n$ ls\n"
TOOL = {"binary": "ship", "command_pattern": r"ship\s+(?P<sub>\S+)"}


@pytest.fixture
def version(project):
    return make_suite(project, ("create", "export"), name="Basics", criteria={"tool": TOOL})


ADDRESS = "/p/tools/suites/basics/pattern/"
HTMX = {"HX-Request": "true", "HX-Target": "matches"}


def rows(response):
    return [[cell.text for cell in row.all("td")] for row in parse(response).all("tbody tr")]


def test_it_begins_with_the_scenarios_pattern(signed_in, version):
    client = signed_in("runner")
    assert main_of(client.get("/p/tools/suites/basics/")).links["Try a pattern"] == ADDRESS
    shown = parse(client.get(ADDRESS + "?scenario=export"))
    assert shown.all("[name=pattern]")[0]["value"] == TOOL["command_pattern"]
    assert "Matches appear here" in shown


def test_matches_have_subcommand_and_exit_code(signed_in, version):
    client = signed_in("runner")
    answer = client.post(ADDRESS, {"binary": "ship", "text": TEXT}, headers=HTMX)
    assert rows(answer) == [
        ["1", "deploy", "exit 1", "ship deploy --env prod"],
        ["2", "help", "help", "ship --help"],
    ]
    assert "2 commands, 1 failed, 1 help calls (source: transcript)" in answer.content.decode()
    whole = client.post(ADDRESS, {"binary": "ship", "text": TEXT})
    assert "Try a command pattern" in whole.content.decode() and rows(whole) == rows(answer)


def test_a_trials_transcript_can_be_chosen(signed_in, version):
    trial = make_trial(make_run(version), "create")
    make_transcript(trial, shell("npx ship list", "", 3))
    client = signed_in("runner")
    assert f"trial {trial.pk}" in client.get(ADDRESS).content.decode()
    given = {"pattern": TOOL["command_pattern"], "trial": trial.pk}
    assert rows(client.post(ADDRESS, given, headers=HTMX)) == [["1", "list", "exit 3", "ship list"]]
    other = make_project("other")
    foreign = make_trial(make_run(make_suite(other)))
    make_transcript(foreign, shell("ship secret"))
    answer = client.post(ADDRESS, given | {"trial": foreign.pk}, headers=HTMX)
    assert f"There is no transcript of trial {foreign.pk}." in answer.content.decode()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"pattern": "(", "text": TEXT}, "is not a regular expression"),
        ({"text": TEXT}, "Enter a pattern, or the tool&#39;s program."),
        ({"binary": "ship"}, "Paste a transcript, or choose a trial."),
        ({"pattern": r"(?=(a+)+$)", "text": "a" * 40 + "!"}, "0 commands"),
    ],
)
def test_what_cannot_be_tried_is_a_sentence(signed_in, version, given, sentence):
    answer = signed_in("runner").post(ADDRESS, given, headers=HTMX)
    assert answer.status_code == 200
    assert sentence in answer.content.decode()
