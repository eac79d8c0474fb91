"""Runs with other judges, another threshold or time limit than their baseline raise no alert by that alone."""

from __future__ import annotations

from typing import Any

import pytest

from runs.compare.measure_changes import compare_run_measures
from runs.models import Alert, Run
from scenarios.models import ScenarioVersion, SuiteVersion
from tests.builders import make_compared, make_project, make_suite

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
JUDGE = {"judge": "strict", "judge_sha256": "1" * 64}
SCRIPT = {"type": "code_judge", "name": "s", "script": "check.py"}
MODEL = {"type": "llm_judge", "name": "m"}
UNJUDGED: dict[str, Any] = {"options": {"judge": False}, "fingerprint": {"judge": "", "judge_sha256": ""}}
JUDGED: dict[str, Any] = {"fingerprint": JUDGE}


def _suite(*evaluators: dict[str, Any], threshold: float = 1.0, **columns: str) -> SuiteVersion:
    criteria = {"gates": [], "evaluators": evaluators, "threshold": threshold}
    version = make_suite(make_project(), ("create",), criteria=criteria)
    ScenarioVersion.objects.update(**{"gates_hash": "g", **columns})
    return version


def _compared(version: SuiteVersion, before: dict[str, Any], after: dict[str, Any]) -> Run:
    make_compared(version, {"create": "pass"}, trials=8, **before)
    return make_compared(version, {"create": "fail"}, trials=8, **after)


@pytest.mark.parametrize(("before", "after"), [(UNJUDGED, JUDGED), (JUDGED, UNJUDGED)], ids=["on", "off"])
@pytest.mark.parametrize(
    ("evaluators", "columns"), [([], {"judge_hash": "j"}), ([MODEL], {}), ([SCRIPT, MODEL], {})]
)
def test_judges_left_out_are_another_standard(evaluators, columns, before, after):
    run = _compared(_suite(*evaluators, **columns), before, after)
    assert (run.verdict, Alert.objects.exists()) == ("not_comparable", False)
    (whole,) = run.changes.filter(measure__name="pass")
    assert whole.detail["not_comparable"] == {"create": ["judge_model"]}


def test_another_judge_of_evaluators_is_another_standard():
    other = {"fingerprint": {**JUDGE, "judge_sha256": "2" * 64}}
    assert _compared(_suite(MODEL), JUDGED, other).verdict == "not_comparable"


def test_without_a_judge_in_the_scenario_results_compare():
    run = _compared(_suite(SCRIPT), UNJUDGED, JUDGED)
    assert (run.verdict, Alert.objects.exists()) == ("regressed", True)


@pytest.mark.parametrize(
    ("own", "before", "after", "compares"),
    [(1.0, 0.4, 0.9, False), (1.0, 0.4, None, False), (0.4, 0.4, None, True), (1.0, 0.4, 0.4, True)],
)
def test_another_threshold_is_another_standard(own, before, after, compares):
    run = _compared(
        _suite(SCRIPT, threshold=own), {"options": {"threshold": before}}, {"options": {"threshold": after}}
    )
    assert run.verdict == ("regressed" if compares else "not_comparable")
    assert Alert.objects.exists() is compares
    names = [each.measure for each in compare_run_measures(run.baseline, run).others if each.scenarios]
    assert "trial/seconds" in names


def test_a_threshold_without_evaluators_decides_nothing():
    run = _compared(_suite(), {"options": {"threshold": 0.4}}, {"options": {"threshold": 0.9}})
    assert (run.verdict, Alert.objects.exists()) == ("regressed", True)


@pytest.mark.parametrize(
    ("own", "before", "after", "compares"),
    [(None, 60, 600, False), (None, None, 600, False), (None, None, 300, True), (120, 60, 600, True)],
)
def test_another_time_limit_is_another_task(own, before, after, compares):
    version = make_suite(make_project(), ("create",), limits={"timeout_seconds": own} if own else {})
    ScenarioVersion.objects.update(gates_hash="g")
    run = _compared(
        version, {"options": {"timeout_seconds": before}}, {"options": {"timeout_seconds": after}}
    )
    assert run.verdict == ("regressed" if compares else "not_comparable")
    assert Alert.objects.exists() is compares
    if not compares:
        (whole,) = run.changes.filter(measure__name="pass")
        assert whole.detail["not_comparable"] == {"create": ["time_limit"]}
