"""What the old side of a run's verdict is, on its page, in the console and in REST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evalhub.teams.models import AuditEvent
from runs.compare.baselines import set_baseline
from runs.exchange.exports.console import verdict_lines
from runs.exchange.exports.document import run_json
from runs.exchange.exports.exports import has_regressed
from runs.models import Run
from tests.builders import make_compared, make_member, make_suite
from tests.web.screen import main_of

pytestmark = pytest.mark.one_database

GOOD = {"create": ["pass"] * 5, "export": ["pass"] * 5}
BAD = {"create": ["fail"] * 5, "export": ["pass"] * 5}
FINGERPRINT = {"target": "local", "tool_version": "1.0"}


def run_of(version, outcomes=GOOD, **changes):
    return make_compared(version, outcomes, fingerprint=FINGERPRINT, **changes)


@pytest.fixture
def line(version):
    return [run_of(version) for _ in range(5)]


def page(client, run):
    return main_of(client.get(f"/p/tools/runs/{run.pk}/"))


def test_a_run_lists_the_runs_of_its_line(signed_in, version, line):
    found = page(signed_in(), run_of(version, BAD))
    assert "Regressed against its line of 5 runs" in found.text
    table = found.table("Runs of the line")
    assert table.row_names == [f"run {each.pk}" for each in line[::-1]]
    assert "was expected" in found.text


def test_page_console_and_rest_say_since_when_and_against_what_it_regressed(signed_in, version, line):
    first, second = run_of(version, BAD), run_of(version, BAD)
    found = page(signed_in(), second)
    assert f"Regressed since run {first.pk}, against its line of 5 runs" in found.text
    document = run_json(second)
    words = f"Regressed since run {first.pk} compared with its line of 5 runs: Pass rate −50"
    assert verdict_lines(document)[0].startswith(words)
    side = document["compared_with"]
    assert side["runs"] == [each.pk for each in line[::-1]]
    assert (side["since"], side["is_pinned"]) == (first.pk, False)
    assert run_json(line[0])["compared_with"] is None
    assert has_regressed(document)


def test_a_line_that_changed_offers_to_compare_again(signed_in, version, line):
    run = run_of(version)
    client = signed_in("runner")
    assert "Compare again" not in page(client, run).buttons
    Run.objects.filter(pk=line[0].pk).update(rollups_at=timezone.now() + timedelta(seconds=1))
    found = page(client, run)
    assert "Runs of the line changed after this verdict, which stays as it was." in found.text
    assert "Compare again" in found.buttons
    Run.objects.filter(pk=line[0].pk).update(rollups_at=timezone.now())
    client.post(f"/p/tools/runs/{run.pk}/compare-again/")
    assert "Compare again" not in page(client, run).buttons
    assert AuditEvent.objects.filter(action="run.compare").exists()


def test_comparing_again_needs_the_right_to_triage(signed_in, version, line):
    run = run_of(version)
    assert signed_in("viewer").post(f"/p/tools/runs/{run.pk}/compare-again/").status_code == 403
    assert signed_in("runner").post("/p/tools/runs/999/compare-again/").status_code == 404


def test_a_pinned_baseline_that_is_the_best_is_named(signed_in, version, project):
    best = run_of(version)
    for _ in range(5):
        run_of(version, {**GOOD, "create": ["pass"] * 4 + ["fail"]})
    set_baseline(best, by=make_member(project))
    found = page(signed_in(), run_of(version))
    assert f"against the pinned run {best.pk}" in found.text
    assert f"The pinned run {best.pk} has the highest pass rate of 6 runs." in found.text


FRESH = [
    {
        "key": "export",
        "kind": "line",
        "batch": 1,
        "first": [0, 10],
        "old": [50, 50],
        "planned": 6,
        "level": 0.001,
        "fresh": [0, 6],
        "outcome": "named",
    }
]


def test_the_scenarios_that_fresh_trials_name_come_first(signed_in, version):
    for _ in range(5):
        run_of(version, {"create": ["pass"] * 10, "export": ["pass"] * 8 + ["fail"] * 2})
    run = run_of(version, {"create": ["pass"] * 9 + ["fail"], "export": ["fail"] * 10}, retests=FRESH)
    rows = page(signed_in(), run).table("Changed scenarios").rows
    assert [(row.header.split()[0], row.cell("Change").text) for row in rows] == [
        ("export", "▼ regressed"),
        ("create", "▼ no longer passes"),
    ]


def test_two_chosen_runs_are_compared_alone(signed_in, version, line):
    run = run_of(version, {"create": ["fail"] * 2, "export": ["pass"] * 2})
    assert run.verdict == "regressed"
    found = main_of(signed_in().get(f"/p/tools/compare/?runs={line[-1].pk},{run.pk}"))
    assert f"against run {line[-1].pk}" in found.region("Verdict").text
    assert "10 / 4" in found.table("Measures").row("Pass rate").text


def test_what_broke_are_all_that_pass_less_often_the_largest_loss_first(signed_in, project):
    keys = [f"s{n:02}" for n in range(12)]
    version = make_suite(project, keys)
    before = {key: ["pass"] * 4 + ["fail"] for key in keys} | {"s00": ["pass"] * 5}
    after = {key: ["pass"] + ["fail"] * 4 for key in keys} | {
        "s00": ["pass"] * 4 + ["fail"],
        "s11": ["fail"] * 5,
    }
    run = make_compared(version, before, fingerprint=FINGERPRINT)
    found = page(signed_in(), make_compared(version, after, fingerprint=FINGERPRINT, baseline=run))
    (sentence, *_) = found.all("h2")
    assert sentence.text.startswith("12 of 12 scenarios pass less often"), sentence.text
    assert "Worse than baseline 12" in found
    (broken,) = found.all("[aria-label='What broke']")
    assert "s11" in broken.text and "s00" not in broken.text
