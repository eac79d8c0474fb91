"""How commands are counted decides what can be compared."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict

from runs.compare.api import trend
from runs.compare.comparison import find_incomparable
from runs.compare.measure_changes import RunComparison, compare_run_measures
from runs.compare.trend_series import TrendFilters, newest_runs_of_suite
from runs.compare.trends_page.views import trend_page
from runs.models import Run, RunMeasure
from runs.results.counting import NOT_COMPARED, list_exit_sources
from runs.results.digests import digest_of
from runs.results.outcome_history import read_histories
from scenarios.models import ScenarioVersion, SuiteVersion
from tests.builders import close, make_project, make_run, make_suite, make_trial, score
from tests.commands.calling import call

pytestmark = pytest.mark.django_db
ERRORS = "interaction/error_rate"


@pytest.fixture
def version() -> SuiteVersion:
    return make_suite(make_project(), ("create",))


def metrics(source: str, rate: float, *, rules: int = 2) -> dict[str, Any]:
    """Return a trial's interaction by a source."""
    return {
        "available": True,
        "source": source,
        "total_commands": 4,
        "known": 4,
        "error_count": int(rate * 4),
        "error_rate": rate,
        "first_try_success_rate": 1 - rate,
        "rules": rules,
    }


def run_of(version: SuiteVersion, *trials: dict[str, Any], outcome: str = "pass") -> Run:
    run = make_run(version)
    for each in trials:
        rows = [
            score("interaction", "error_rate", each["error_rate"]),
            score("interaction", "completed", 1.0),
            score("gates", "no_transcript_errors", 1.0, True),
            score("gates", "file_exists", 1.0, True),
        ]
        make_trial(run, scores=rows, detail={"interaction": each}, outcome=outcome)
    return close(run)


def error_rates(compared: RunComparison) -> tuple[float | None, float | None] | None:
    changes = [each for each in (*compared.headline, *compared.others) if each.measure == ERRORS]
    return (changes[0].before, changes[0].after) if changes and changes[0].scenarios else None


def test_recorded_trials_compare_by_the_record(version):
    before = run_of(version, metrics("recorded", 0.25))
    after = run_of(version, metrics("recorded", 0.5))
    compared = compare_run_measures(before, after)
    assert error_rates(compared) == (0.25, 0.5) and compared.exit_sources == ("recorded",)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (("recorded", "stream", "stream"), (0.5, "reported")),
        (("recorded", "stream"), (0.25, "recorded")),
        (("transcript", "stream"), (0.5, "reported")),
        (("transcript", "transcript", "recorded"), (0.75, "estimated")),
    ],
    ids=["most", "a tie", "events before text", "text"],
)
def test_the_source_of_most_trials_counts(version, sources, expected):
    rates = {"recorded": 0.25, "stream": 0.5, "transcript": 0.75}
    run = run_of(version, *(metrics(source, rates[source]) for source in sources))
    rows = RunMeasure.objects.filter(run=run, scenario=None)
    rate = rows.get(measure__layer="interaction", measure__name="error_rate")
    assert (rate.mean, list_exit_sources(run.counting)) == expected
    assert [rows.get(measure__name=name).n for name in ("pass", "completed")] == [1, 1]
    assert RunMeasure.objects.get(run=run, scenario__isnull=False, measure__name="pass").n == len(sources)
    others = sum(source != max(sources, key=sources.count) for source in sources)
    layers = digest_of(run).layers
    assert layers is not None
    assert (layers.exit_codes.others, layers.exit_codes.commands) == (others, 4 * (len(sources) - others))


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        (metrics("stream", 0.25, rules=1), metrics("stream", 0.5), "rules"),
        (metrics("transcript", 0.25), metrics("stream", 0.5), "ends"),
        (metrics("transcript", 0.25), metrics("recorded", 0.5), "ends"),
        (metrics("stream", 0.25), metrics("recorded", 0.5), "ends"),
    ],
)
def test_other_rules_and_sources_are_not_compared(version, before, after, part):
    compared = compare_run_measures(run_of(version, before), run_of(version, after))
    assert error_rates(compared) is None and compared.exit_sources == ()
    assert compared.reasons == {"create": (part,)}
    assert compared.comparable == 1


def test_outcomes_that_read_commands_are_not_compared(version):
    _with_gate("no_transcript_errors")
    before = run_of(version, metrics("stream", 0.25, rules=1))
    after = run_of(version, metrics("recorded", 0.5))
    assert find_incomparable(before, after) == {"create": ("gate_counting",)}
    names = {each.measure for each in compare_run_measures(before, after).headline if each.scenarios}
    assert "trial/pass" not in names
    shown = read_histories(version.suite)
    assert [len(each.outcomes) for each in shown.values()] == [1]
    done = call("compare_runs", str(before.pk), str(after.pk))
    assert "create (counting of commands for a gate)" in done.out


def test_outcomes_by_other_gates_are_compared(version):
    _with_gate("file_exists")
    before = run_of(version, metrics("stream", 0.25, rules=1))
    after = run_of(version, metrics("stream", 0.5))
    assert find_incomparable(before, after) == {}
    assert [len(each.outcomes) for each in read_histories(version.suite).values()] == [2]


def test_compare_runs_names_the_source(version):
    before, after = run_of(version, metrics("recorded", 0.25)), run_of(version, metrics("recorded", 0.5))
    done = call("compare_runs", str(before.pk), str(after.pk))
    assert "Tool use is compared by recorded exit codes." in done.out
    document = call("compare_runs", str(before.pk), str(after.pk), "--json").document
    assert document["ends"] == ["recorded"]


def points(version: SuiteVersion) -> list[float]:
    """Return the error rates of the suite's trend, as its page and REST show them."""
    runs = newest_runs_of_suite(version.suite_id, TrendFilters())
    page = trend_page(version.suite, QueryDict(f"measure={ERRORS}"))
    rest = trend(version.suite, ERRORS)
    assert page.large
    shown = [each.value for each in page.large.chart.series.values]
    assert shown == [each.mean for each in rest.points] and len(shown) == len(runs)
    return shown


def test_a_trend_says_where_its_sources_differ(version):
    run_of(version, metrics("recorded", 0.25))
    run_of(version, metrics("recorded", 0.5))
    assert trend_page(version.suite, QueryDict()).compared_by == ""
    run_of(version, metrics("stream", 0.75))
    assert points(version) == [0.25, 0.5, 0.75]
    assert trend_page(version.suite, QueryDict()).compared_by == NOT_COMPARED


def test_no_change_point_lies_between_events_and_records(version):
    for rate in (0.0, 0.0, 0.0, 0.0):
        run_of(version, metrics("stream", rate))
    for _ in range(4):
        run_of(version, metrics("recorded", 0.75))
    large = trend_page(version.suite, QueryDict(f"measure={ERRORS}")).large
    assert large
    assert large.chart.series.changes == []


def _with_gate(name: str) -> None:
    for each in ScenarioVersion.objects.all():
        each.content["criteria"]["gates"] = [{"type": name}]
        each.save()
