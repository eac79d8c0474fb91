"""From a run's subcommands to the calls that failed."""

from __future__ import annotations

from random import Random

import pytest

from evalhub.lib.limits import LARGEST_FILE
from evaluators.model import Event
from runs.results.run_page.subcommands import LARGEST, MOST
from tests.builders import close, make_project, make_run, make_trial, used
from tests.shell_events import shell
from tests.trial_parts import make_command, make_transcript
from tests.web.results.runs.pages import address, page
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

FAILED = {"subcommand": "export", "exit_code": 2, "failed": True}


def panel(client, run, name="export"):
    """Return the panel as htmx asks for it."""
    headers = {"HX-Request": "true", "HX-Target": "failing"}
    return parse(client.get(address(run), {"failing": name}, headers=headers))


def rows(shown):
    """Return the texts of the table's rows."""
    if "Failing calls" not in shown.tables:
        return []
    return [row.texts for row in shown.table("Failing calls").rows]


def failing(run, key="create", *, line="tool export --all", output="error: no such flag '--all'", **changes):
    """Return a trial whose second command failed."""
    trial = make_trial(run, key, outcome="fail")
    make_transcript(trial, [*shell("ls"), *shell(line, output, 2, number=1)])
    make_command(trial, 0, line, **{**FAILED, "event": 2, **changes})
    return trial


def test_it_works(signed_in, version):
    run = make_run(version)
    trial = failing(run)
    shown = panel(signed_in(), run)
    assert rows(shown) == [["create", "1", "tool export --all exit 2 · no such flag '--all'"]]
    assert shown.link("tool export --all").address == f"/p/tools/trials/{trial.pk}/#c2"
    assert shown.all("html") == []


def test_the_command_it_leads_to_is_on_the_page_of_the_trial(signed_in, version):
    run = make_run(version)
    trial = make_trial(run, outcome="fail")
    events = [event for n in range(230) for event in shell(f"ls {n}", number=n)]
    preamble = [Event("message", role="assistant", text="Now."), Event("raw", text="noise")]
    make_transcript(trial, [*preamble, *events, *shell("tool export", "no", 2, number=230)])
    make_command(trial, 0, "tool export", **FAILED, event=462)
    client = signed_in()
    link = panel(client, run).link("tool export").address
    assert link.endswith("?part=commands&from=200#c231")
    (command,) = parse(client.get(link)).all("#c231 summary code")
    assert command.text == "tool export"


def test_a_page_without_script_holds_the_panel(signed_in, version):
    run = make_run(version)
    failing(run)
    text = page(signed_in(), close(run), "?failing=export")
    assert "Failing calls of export" in text.headings
    assert rows(text)[0][:2] == ["create", "1"]


@pytest.mark.parametrize("errors", [0, 3])
def test_only_subcommands_that_failed_lead_there(signed_in, version, errors):
    run = make_run(version)
    name = "ex port&failing=<b>/ä"
    make_trial(run, detail=used({"name": name, "calls": 8, "errors": errors}))
    text = page(signed_in(), close(run))
    quoted = "?failing=ex%20port%26failing%3D%3Cb%3E%2F%C3%A4"
    assert text.addresses.count(f"{quoted}#failing") == (3 if errors else 0)
    assert "Failing calls of" not in text


def test_names_come_back_as_they_were_quoted(signed_in, version):
    run = make_run(version)
    name = "ex port&failing=<script>/ä\u202e"
    failing(run, subcommand=name)
    text = page(signed_in(), run, "?failing=ex%20port%26failing%3D%3Cscript%3E%2F%C3%A4%E2%80%AE")
    assert "Failing calls of ex port&failing=<script>/ä⟨U+202E⟩" in text.headings
    assert len(rows(text)) == 1


def test_a_subcommand_that_never_failed_says_so(signed_in, version):
    run = make_run(version)
    failing(run)
    client = signed_in()
    sentence = "No failing calls of this subcommand in this run."
    for name in ("list", "x" * 3000, "%", "_" * 6):
        assert sentence in panel(client, run, name), name
    assert sentence in parse(client.get(address(run), {"failing": "list"}))


def test_what_no_rate_counts_is_left_out(signed_in, version):
    run = make_run(version)
    for outcome, changes in (
        ("pass", {"exit_code": None, "failed": False}),
        ("pass", {"exit_code": 0, "failed": False}),
        ("pass", {"subcommand": "list"}),
        ("pass", {"help": True}),
        ("error", {}),
        ("", {}),
    ):
        make_command(make_trial(run, outcome=outcome), 0, "tool export", **{**FAILED, **changes})
    failing(make_run(version))
    assert rows(panel(signed_in(), run)) == []
    failing(run)
    assert len(rows(panel(signed_in(), run))) == 1


def test_calls_are_ordered_by_scenario_and_trial(signed_in, version):
    run = make_run(version)
    for key in ("export", "create", "create"):
        trial = make_trial(run, key, outcome="fail")
        for n in (0, 1):
            make_command(trial, n, f"tool export {n}", **FAILED)
    found = [(row[0], row[1], row[2].removesuffix(" exit 2")[-1]) for row in rows(panel(signed_in(), run))]
    places = [("create", "1"), ("create", "2"), ("export", "1")]
    assert found == [(*place, n) for place in places for n in "01"]


def test_more_than_it_shows_is_counted(signed_in, version):
    run = make_run(version)
    trial = make_trial(run)
    for n in range(MOST + 3):
        make_command(trial, n, f"tool export {n}", **FAILED)
    text = panel(signed_in(), run)
    assert len(rows(text)) == MOST
    assert "3 more not shown." in text
    make_command(trial, MOST + 3, "tool list", **{**FAILED, "subcommand": "list"})
    assert "more" not in panel(signed_in(), run, "list")


def test_without_a_transcript_links_use_command_numbers(signed_in, version):
    run = make_run(version)
    trial = make_trial(run)
    make_command(trial, 0, "tool list", exit_code=0)
    make_command(trial, 1, "tool export", **FAILED)
    client = signed_in()
    assert panel(client, run).link("tool export").address == f"/p/tools/trials/{trial.pk}/#c2"
    (command,) = parse(client.get(f"/p/tools/trials/{trial.pk}/")).all("#c2 summary code")
    assert command.text == "tool export"


@pytest.mark.parametrize(
    "long",
    ["x" * LARGEST, Random(1).randbytes(LARGEST_FILE).hex()],
    ids=["as it was recorded", "as it is stored"],
)
def test_a_transcript_that_is_too_long_is_not_looked_into(signed_in, version, long):
    run = make_run(version)
    short, trial = failing(run, line="tool export"), make_trial(run)
    make_transcript(trial, [*shell("ls", long), *shell("tool export", "no", 2, number=1)])
    make_command(trial, 0, "tool export", **FAILED, event=2)
    text = panel(signed_in(), run)
    assert f"/p/tools/trials/{short.pk}/#c2" in text.addresses
    assert f"/p/tools/trials/{trial.pk}/#transcript" in text.addresses
    assert rows(text)[1] == ["create", "2", "tool export exit 2"]


def test_hostile_lines_and_outputs_stay_text(signed_in, version):
    run = make_run(version)
    hostile = "</td><script>alert(1)</script>\u202e\x1b[31m"
    failing(run, line=f"tool export {hostile}{'x' * 5000}", output=f"error: {hostile}")
    text = panel(signed_in(), run)
    assert text.count("</td><script>alert(1)</script>⟨U+202E⟩") == 2
    assert text.all("script") == []
    assert len(text.text) < 2000


def test_only_who_asks_for_them_pays_two_queries(signed_in, version, django_assert_max_num_queries):
    run = make_run(version)
    for _ in range(9):
        failing(run)
    client, run = signed_in(), close(run)
    with django_assert_max_num_queries(14):
        page(client, run)
    with django_assert_max_num_queries(16):
        page(client, run, "?failing=export")
    with django_assert_max_num_queries(6):
        panel(client, run)


def test_strangers_do_not_see_them(signed_in, version):
    run = make_run(version)
    failing(run)
    stranger = signed_in(of=make_project("other"))
    assert stranger.get(address(run), {"failing": "export"}).status_code == 404
