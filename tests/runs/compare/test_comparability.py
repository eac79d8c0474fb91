"""Scenarios that ask or judge otherwise than in the baseline are neither lost nor won."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluators.grading.suite_summary import suite_summary
from runs.compare.comparison import comparison_of
from runs.compare.measure_changes import compare_run_measures
from runs.exchange.exports.console import summary_lines
from runs.exchange.exports.document import run_digest, run_document
from runs.exchange.exports.result_formats import suite_run
from runs.models import Alert, Run
from scenarios.models import Rubric, ScenarioVersion, SuiteVersion
from tests.builders import (
    close,
    make_compared,
    make_member,
    make_project,
    make_run,
    make_suite,
    make_trial,
    make_version,
)
from tests.commands.calling import call
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

pytestmark = pytest.mark.django_db
KEYS = ("create", "export", "list", "kept")
NAMED = "3 scenarios not comparable, changed: create (task), export (gates), list (rubric)"
LINE = "3 scenarios not comparable: task changed (1), gates changed (1), rubric changed (1)"


@pytest.fixture
def runs() -> tuple[Run, Run]:
    """Return a run and a later one, for which task, gates and rubric of a scenario each are others."""
    # The judge's score of a scenario whose gates changed can be compared, and is not what these tests are about.
    project = make_project(smallest_effects={"judge/judge": 1.0})
    before = make_suite(project, KEYS)
    after = make_version(before.suite, create={"prompt": "Other."}, export={}, list={}, kept={})
    _change(after, "export", gates_hash="other")
    rubric = Rubric.objects.create(project=project, name="r", sha256="0" * 64, content={})
    _change(after, "list", rubric=rubric)
    base = make_compared(before, dict.fromkeys(KEYS, "pass"), trials=6)
    new = make_compared(after, {**dict.fromkeys(KEYS, "fail"), "kept": "pass"}, trials=6)
    assert new.baseline == base
    return base, new


def _change(version: SuiteVersion, key: str, **columns: object) -> None:
    entry = version.entries.get(scenario_version__scenario__key=key)
    ScenarioVersion.objects.filter(pk=entry.scenario_version_id).update(**columns)


def test_no_alert_counts_them(runs):
    assert not Alert.objects.exists()
    (whole,) = runs[1].changes.filter(measure__name="pass")
    assert (whole.scenario, whole.verdict, whole.before, whole.after) == (None, "too_little", 1.0, 1.0)
    left_out = {"create": ["task"], "export": ["gates"], "list": ["rubric"]}
    assert (whole.detail["not_comparable"], whole.detail["scenarios"]) == (left_out, 1)


def test_what_can_be_compared_still_regresses(runs):
    again = make_compared(runs[1].suite_version, {"create": "fail", "kept": "fail"}, trials=6)
    assert [each.scenario.key for each in again.changes.exclude(scenario=None)] == ["kept"]
    assert Alert.objects.get().run == again


def test_new_passes_leave_them_out_too(runs):
    base, _ = runs
    older = make_compared(base.suite_version, {"create": "fail", "kept": "pass"})
    newer = make_compared(
        runs[1].suite_version, {"create": "pass", "kept": "pass"}, options={"baseline": str(older.pk)}
    )
    assert newer.baseline == older
    assert comparison_of(newer).new_passes == ()


def test_a_run_over_rest_names_them_apart(runs):
    found = run_document(runs[1].pk)["run"]
    assert (found["regressions"], found["new_passes"]) == ([], [])
    assert found["not_comparable"] == {"create": ["task"], "export": ["gates"], "list": ["rubric"]}


def test_the_console_lists_what_cannot_be_compared(runs):
    text = summary_lines(run_digest(runs[1].pk, most=10))
    assert f"! {NAMED}" in text
    assert "REGRESSIONS" not in text


def test_the_contracts_console_lists_them_too(runs):
    found = suite_run(runs[1])
    assert found.comparison.regressions == ("create", "export", "list")
    assert f"! {NAMED}" in suite_summary(found)


def test_comparing_two_runs_ends_well_without_them(runs):
    ended = call("compare_runs", str(runs[0].pk), str(runs[1].pk))
    assert ended.code == 0
    assert "Too little data: 1 of 4 scenarios comparable." in ended.out
    assert NAMED in ended.out
    document = call("compare_runs", str(runs[0].pk), str(runs[1].pk), "--json").document
    assert (document["regressions"], document["not_comparable"]["export"]) == ([], ["gates"])
    assert (document["verdict"], document["comparable"], document["scenarios"]) == ("too_little", 1, 4)


def test_the_pages_show_it_in_one_line(runs):
    base, new = runs
    client = Client()
    client.force_login(make_member(new.project))
    page = parse(client.get(new.get_absolute_url()))
    assert f"{LINE}." in page
    assert "No scenario stopped passing" in page
    rows = [row for row in page.table("Scenarios").rows if row.all("th")]
    assert [row.cell("vs. baseline").text for row in rows] == ["–", "–", "–", "="]
    text = client.get(f"/p/tools/compare/?runs={base.pk},{new.pk}").content.decode()
    assert f"! {LINE}." in text
    assert "▼ 100 pts" not in text


@pytest.mark.parametrize(
    ("before", "after", "compared"),
    [
        ("litellm m 1/2", "litellm m 1/2", True),
        ("litellm m 1/2", "project m 2/4", False),
        ("", "project m 2/4", True),
    ],
)
def test_costs_of_other_prices_are_not_compared(before, after, compared):
    version = make_suite(make_project())
    runs = []
    for source in (before, after):
        run = make_run(version)
        detail = {"price_source": source} if source else {}
        for key in ("create", "export"):
            make_trial(run, key, cost_usd=0.5, detail=detail)
        runs.append(close(run))
    found = compare_run_measures(*runs)
    names = [each.measure for each in found.others if each.scenarios]
    assert ("trial/cost_usd" in names) is compared
    assert "trial/seconds" in names
    assert found.not_comparable == {}
