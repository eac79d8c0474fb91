"""The usage page: subcommands with their failures, confused flags, and their tables."""

from __future__ import annotations

import pytest

from runs.models import FlagConfusion, Run, SubcommandMeasure
from tests.builders import make_run
from tests.web.screen import parse

ADDRESS = "/p/tools/usage/"


@pytest.fixture
def run(version) -> Run:
    before = make_run(version, outcome="pass")
    run = make_run(version, outcome="fail", tool_version="2.0", baseline=before)
    for owner, errors in ((before, 1), (run, 6)):
        SubcommandMeasure.objects.create(
            run=owner,
            subcommand="export",
            calls=10,
            errors=errors,
            first_tries=3,
            helps=3,
            helps_before=2,
            tries={"2": 3},
        )
    SubcommandMeasure.objects.create(run=run, subcommand="list", calls=2, first_tries=2)
    FlagConfusion.objects.create(
        run=run, subcommand="export", kind="near_miss", typed="--fmt", meant="--format", calls=4, trials=2
    )
    return run


def test_subcommands_show_their_rates_over_runs(signed_in, run):
    page = parse(signed_in("viewer").get(ADDRESS))
    table = page.table("Subcommands")
    row = table.row("export")
    assert (row.cell("Calls").text, row.cell("Help before use").text) == ("20", "4")
    assert row.cell("Error rate").text == "35 % of calls failed"
    assert row.cell("95 % interval").text == "18 % to 57 %"
    link = row.cell("Error rate").links
    assert list(link.values()) == [f"/p/tools/runs/{run.pk}/?failing=export#failing"]
    assert "vs. baseline" not in table.columns


def test_rates_are_over_calls_whose_end_is_known(signed_in, run):
    SubcommandMeasure.objects.filter(run=run, subcommand="export").update(unknown=4)
    client = signed_in("viewer")
    table = parse(client.get(ADDRESS)).table("Subcommands")
    row = table.row("export")
    assert row.cell("Calls").text == "20 16 known"
    assert row.cell("Error rate").text.startswith("44")
    assert row.cell("First-try success").text == "38 %"
    few = table.row("list")
    assert (few.cell("Error rate").text, few.cell("First-try success").text) == ("n/a", "n/a")
    assert few.cell("Error rate").all("abbr")[0]["title"] == "Fewer than 3 exit codes are known"


def test_the_page_says_what_is_estimated_and_not_compared(signed_in, run):
    Run.objects.filter(pk=run.pk).update(counting={"all": ["2", "estimated", False]})
    page = parse(signed_in("viewer").get(ADDRESS, {"compare": "baseline", "tool_version": "2.0"}))
    assert "1 run with exit codes estimated from text." in page
    assert "1 baseline not compared: counting rules or source of exit codes changed." in page
    assert "None of these runs has a baseline that counts commands alike." in page
    assert "vs. baseline" not in page.table("Subcommands").columns


def test_the_change_from_the_baselines_is_shown_on_demand(signed_in, run):
    page = parse(signed_in("viewer").get(ADDRESS, {"compare": "baseline", "tool_version": "2.0"}))
    assert page.table("Subcommands").row("export").cell("vs. baseline").text == "▲ 50 pts"
    assert page.table("Subcommands").row("list").cell("vs. baseline").text == "–"


def test_confused_flags_are_listed_with_the_meant_one(signed_in, run):
    page = parse(signed_in("viewer").get(ADDRESS))
    (row,) = page.table("Confused flags and arguments").rows
    assert row.header == "export has no option --fmt. Did they mean --format?"
    assert (row.cell("Kind").text, row.cell("Trials").text) == ("Near miss", "2")


def picture(page, subcommand):
    """Return the row of a subcommand in the picture."""
    return page.table("Calls and failures").row(subcommand)


def test_the_subcommand_with_most_failures_is_first_with_what_is_confused(signed_in, run):
    page = parse(signed_in("viewer").get(ADDRESS))
    assert page.table("Calls and failures").row_names == ["export", "list"]
    row = picture(page, "export")
    assert [row.cell(each).text for each in ("Calls", "Failed")] == ["20", "✕ 7 failed 35 %"]
    assert row.cell("Confused").text == "--fmt for --format 4×"
    assert row.all("svg")[0]["aria-label"] == "20 calls, 7 failed"
    assert picture(page, "list").cell("Failed").text.startswith("0")


def test_two_versions_of_the_tool_are_two_halves(signed_in, run):
    Run.objects.exclude(pk=run.pk).update(tool_version="1.0")
    client = signed_in("viewer")
    page = parse(client.get(ADDRESS, {"compare": "version"}))
    assert "1 run: 1.0 above, 2.0 below" in page
    label = picture(page, "export").all("svg")[0]["aria-label"]
    assert label == "before: 10 calls, 1 failed; now: 10 calls, 6 failed"
    assert page.table("Subcommands").row("export").cell("vs. 1.0").text == "▲ 50 pts"
    assert "upper half" not in parse(client.get(ADDRESS))
    Run.objects.update(tool_version="2.0")
    alone = parse(client.get(ADDRESS, {"compare": "version"}))
    assert "No suite has runs of two versions of the tool that count commands alike." in alone
    assert picture(alone, "export").cell("Calls").text == "20"


def test_the_flags_are_markdown(signed_in, run):
    markdown = signed_in("viewer").get(ADDRESS, {"format": "md"})
    assert markdown.content.decode().startswith(
        "- [ ] `export` has no option `--fmt`. Did they mean `--format`?"
    )


def test_an_empty_project_says_what_will_be_here(signed_in, project):
    assert "No calls yet" in parse(signed_in("viewer").get(ADDRESS))


def test_it_makes_at_most_twelve_queries(signed_in, run, django_assert_max_num_queries):
    client = signed_in("viewer")
    with django_assert_max_num_queries(12):
        client.get(ADDRESS, {"compare": "baseline"})
