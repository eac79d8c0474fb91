"""A run in which a third of the trials or more hit errors: no verdict, no baseline, in no line."""

from __future__ import annotations

import json

import pytest

from runs.compare.baselines import baseline_of, check_choice, set_baseline
from runs.compare.comparison import compare_with_baseline
from runs.compare.measure_changes import compare_run_measures
from runs.compare.trend_series import TrendFilters, is_of_line, newest_runs_of_suite
from runs.errors import RequestError
from runs.exchange.exports.document import run_json
from runs.exchange.exports.summary_markdown import comparison_summary, run_summary
from runs.models import Baseline, Change, Run
from runs.models.run import MOSTLY_MEASURED, has_too_many_errors
from scenarios.models import SuiteVersion
from tests.builders import make_project, make_suite
from tests.commands.calling import call
from tests.runs.carrying import shell_target, suite_of
from tests.runs.past_runs import past_run

pytestmark = pytest.mark.django_db

KEYS = ("a", "b", "c", "d", "e")
SENTENCE = (
    "Run {} has no verdict: 10 of 15 trials hit errors, a third or more. Fix their cause, then retry them."
)
SAME = {"fingerprint": {"suite_version": "1", "target": "local", "model": "m"}}


@pytest.fixture
def version() -> SuiteVersion:
    return make_suite(make_project(), KEYS)


def passed(version: SuiteVersion, **changes: object) -> Run:
    return past_run(version, dict.fromkeys(KEYS, ("pass",) * 3), **changes)


def broken(version: SuiteVersion, *, outcomes: tuple[str, ...] = ("error", "error", "fail"), **changes: object) -> Run:  # fmt: skip
    return past_run(version, dict.fromkeys(KEYS, outcomes), **changes)


def compared(run: Run) -> Run:
    run = Run.objects.select_related("project", "suite", "suite_version", "target", "baseline").get(pk=run.pk)
    compare_with_baseline(run)
    return run


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 0), False),
        ((2, 0, 1), True),
        ((0, 2, 1), True),
        ((3, 0, 1), False),
        ((7, 2, 4), False),
        ((6, 2, 4), True),
        ((0, 0, 1), True),
        ((9, 9, 0), False),
    ],
)
def test_the_threshold_is_a_third_in_python_and_in_queries(version, counts, expected):
    assert has_too_many_errors(*counts) is expected
    names = dict(zip(("passed", "failed", "errors"), counts, strict=True))
    run = past_run(version)
    Run.objects.filter(pk=run.pk).update(**names)
    assert Run.objects.filter(MOSTLY_MEASURED, pk=run.pk).exists() is not expected


def test_it_has_no_verdict_and_says_why(version):
    passed(version)
    run = compared(broken(version))
    found = run_json(run)
    assert (found["verdict"], found["verdict_reason"]) == (None, "errors")
    assert found["measures"] == []
    assert not Change.objects.filter(run=run).exists()
    assert not hasattr(Run.objects.get(pk=run.pk), "alert")
    assert SENTENCE.format(run.pk) in run_summary(run)


def test_fewer_errors_leave_the_verdict(version):
    passed(version)
    run = compared(broken(version, outcomes=("error", "fail", "fail", "fail")))
    found = run_json(run)
    assert (found["verdict"], found["verdict_reason"]) == ("regressed", None)


def test_it_is_never_a_baseline(version):
    before = passed(version)
    run = broken(version)
    with pytest.raises(RequestError, match=r"can't be a baseline\. Run .* has no verdict: 10 of 15 trials"):
        set_baseline(run, by=None)
    with pytest.raises(RequestError, match="can't be the baseline"):
        check_choice(run.project_id, str(run.pk))
    later = passed(version)
    assert baseline_of(later) == before
    assert baseline_of(later, str(run.pk)) is None
    # Pinned by an older release, or before its trials were retried.
    Baseline.objects.create(suite=run.suite, target=run.target, run=run)
    assert baseline_of(later) == before


def test_it_is_in_no_line(version):
    passed(version, **SAME)
    run = compared(broken(version, **SAME))
    again = compared(passed(version, **SAME))
    lines = {
        each.pk: is_of_line(each, TrendFilters())
        for each in newest_runs_of_suite(run.suite_id, TrendFilters())
    }
    assert (lines[run.pk], lines[again.pk]) == (False, True)


@pytest.mark.parametrize("turned", [False, True])
def test_nothing_is_compared_with_it(version, turned):
    pair = [passed(version), broken(version)]
    base, new = pair[::-1] if turned else pair
    found = compare_run_measures(base, new)
    assert (found.verdict, found.verdict_reason) == (None, "errors")
    assert found.headline == found.others == ()
    assert SENTENCE.format(pair[1].pk) in comparison_summary(base, new)
    out = call("compare_runs", str(base.pk), str(new.pk), "--json")
    document = json.loads(out.out)
    assert (document["verdict"], document["verdict_reason"], out.code) == (None, "errors", 4)
    assert SENTENCE.format(pair[1].pk) in call("compare_runs", str(base.pk), str(new.pk)).out


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("failing", "code"), [(1, 4), (0, 3)])
def test_fail_on_regression_ends_with_4(failing, code):
    """Three scenarios passed in the baseline; then one fails, and the agent of others is killed."""
    project = make_project("default")
    gate = {"criteria": {"gates": [{"type": "file_exists", "path": "out.txt"}]}}
    keys = ("one", "two", "three")
    version = suite_of(project, **{key: {**gate, "prompt": "echo > out.txt"} for key in keys})
    target = shell_target(project)
    chosen = (version.suite.slug, "--target", target.name, "--now", "--fail-on-regression", "--regression-rule", "pass-fail")  # fmt: skip
    assert call("run_scenarios", *chosen).code == 0
    for number, entry in enumerate(version.entries.select_related("scenario_version")):
        prompts = ["true", "kill -KILL $$" if failing else "true", "echo > out.txt"]
        content = entry.scenario_version.content
        entry.scenario_version.content = {**content, "prompt": prompts[number]}
        entry.scenario_version.save(update_fields=["content"])
    out = call("run_scenarios", *chosen)
    assert out.code == code
    assert ("has no verdict: 1 of 3 trials hit errors" in out.out) is (code == 4)
