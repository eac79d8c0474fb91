"""The subcommands of a run: how often they were tried, and what went wrong."""

from __future__ import annotations

import pytest

from evaluators.tool_use.interaction import RULES_VERSION
from tests.builders import close, make_run, make_trial, used
from tests.web.results.runs.pages import page

pytestmark = pytest.mark.one_database


def subcommand(shown, name):
    """Return the cells of a subcommand's row."""
    texts = shown.table("Subcommands").row(name).texts[1:]
    return [each.removesuffix(" of calls failed") for each in texts]


def test_a_subcommand_shows_attempts_and_errors(signed_in, version):
    run = make_run(version)
    counts = {"name": "export", "calls": 8, "errors": 4, "first_tries": 2}
    make_trial(
        run,
        "create",
        detail=used(counts, export={"tries": {"1": 1, "3": 2}, "errors": {"no flag": 3, "no": 1}}),
    )
    make_trial(run, "export", detail=used(counts, export={"tries": {"2": 1}, "errors": {"no": 1}}))
    rows = page(signed_in(), close(run))
    cells = subcommand(rows, "export")
    assert cells[:3] == ["16", "50 %", "25 %"]
    assert cells[-2:] == ["2.5", "no flag 3 times"]
    assert len(cells) == 7


def test_a_subcommand_is_compared_with_the_baselines(signed_in, version):
    before, run = make_run(version), make_run(version)
    rates = {"export": (1, 4), "list": (3, 1), "create": (2, 2)}
    for place, each in enumerate((before, run)):
        rows = [{"name": name, "calls": 10, "errors": errors[place]} for name, errors in rates.items()]
        make_trial(each, "create", detail=used(*rows, *([{"name": "new", "calls": 9}] if place else [])))
    run.baseline = close(before)
    run.save()
    text = page(signed_in(), close(run))
    changes = {name: subcommand(text, name)[2] for name in (*rates, "new")}
    assert changes == {"export": "▲ 30 pts", "list": "▼ 20 pts", "create": "= 0", "new": "–"}
    # On a phone the rates themselves are what is left.
    cell = text.table("Subcommands").row("export").cell("vs. baseline")
    assert (cell.text, cell.classes) == ("▲ 30 pts", {"p2", "worse"})


def test_rates_are_compared_over_shared_scenarios(signed_in, version):
    before, run = make_run(version), make_run(version)
    for each, key, errors in ((before, "create", 4), (before, "export", 0), (run, "create", 5)):
        rows = [{"name": "list", "calls": 10, "errors": errors}]
        alone = [{"name": "show", "calls": 10}] if key == "export" or each == run else []
        make_trial(each, key, detail=used(*rows, *alone))
    run.baseline = close(before)
    run.save()
    text = page(signed_in(), close(run))
    assert (subcommand(text, "list")[2], subcommand(text, "show")[2]) == ("▲ 10 pts", "–")


def test_hostile_messages_of_a_tool_stay_text(signed_in, version):
    run = make_run(version)
    hostile = "</td><script>alert(1)</script>\u202e\x1b[31m"
    counts = {"name": hostile, "calls": 8, "errors": 4}
    make_trial(run, detail=used(counts, **{hostile: {"tries": {}, "errors": {hostile: 3}}}))
    text = page(signed_in(), close(run))
    assert text.table("Subcommands").count("</td><script>alert(1)</script>⟨U+202E⟩␛[31m") == 2
    assert text.all("script") == []


def test_an_open_run_shows_its_subcommands_so_far(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, "create", detail=used({"name": "export", "calls": 8, "errors": 4}))
    assert subcommand(page(signed_in(), run), "export")[:2] == ["8", "50 %"]


@pytest.mark.parametrize("compared", [False, True])
def test_the_last_row_totals_all_subcommands(signed_in, version, compared):
    before = make_run(version)
    make_trial(before)
    run = make_run(version, baseline=close(before) if compared else None)
    often = {"name": "export", "calls": 30, "errors": 9, "first_tries": 15, "helps": 2}
    seldom = {"name": "list", "calls": 10, "errors": 1, "first_tries": 9, "retries_after_failure": 6}
    make_trial(run, detail=used(often, seldom))
    table = page(signed_in(), close(run)).table("Subcommands")
    cells = table.rows[-1].texts
    assert [each for each in cells if each] == ["All", "40", "25 %", "60 %", "15 %", "2"]
    assert len(cells) == len(table.columns)


def test_one_subcommand_alone_has_no_sum(signed_in, version):
    run = make_run(version)
    make_trial(run, detail=used({"name": "export", "calls": 30}))
    assert page(signed_in(), close(run)).table("Subcommands").row_names == ["export"]


def test_columns_that_no_subcommand_fills_are_left_out(signed_in, version):
    run = make_run(version)
    counts = [{"name": name, "calls": 9, "errors": 0, "first_tries": 9} for name in ("list", "export")]
    make_trial(run, detail=used(*counts, list={"tries": {"1": 9}, "errors": {}}))
    table = page(signed_in(), close(run)).table("Subcommands")
    assert "Attempts to success" in table.columns
    assert "Most common error" not in table.columns
    assert {len(table.columns), *(len(row.cells) for row in table.rows)} == {7}


def test_rates_are_over_known_ends_and_too_few_give_none(signed_in, version):
    run = make_run(version)
    export = {"name": "export", "calls": 10, "errors": 2, "first_tries": 2, "unknown": 5}
    listed = {"name": "list", "calls": 4, "errors": 1, "first_tries": 1, "unknown": 2}
    detail = used(export, listed)
    detail["interaction"] |= {"rules": RULES_VERSION, "ends": "reported"}
    make_trial(run, "create", detail=detail)
    table = page(signed_in(), close(run)).table("Subcommands")
    row = table.row("export")
    assert (row.cell("Calls").text, row.cell("First-try success").text) == ("10 5 known", "40 %")
    assert row.cell("Error rate").text.startswith("40 %")
    few = table.row("list")
    assert (few.cell("Calls").text, few.cell("First-try success").text) == ("4 2 known", "n/a")
    assert few.cell("Error rate").text.startswith("n/a") and len(few.cell("Error rate").links) == 1
    assert table.row("All").cell("Calls").text == "14 7 known"
