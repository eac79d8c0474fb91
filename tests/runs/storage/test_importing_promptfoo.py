"""promptfoo's results: which rows are trials of one scenario, what they cost, and which came from its cache."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from runs.models import Run, Trial
from runs.reports.document import run_document
from runs.warehouse.import_results import import_results
from tests.builders import make_project

FILES = Path(__file__).parents[2] / "files"
pytestmark = pytest.mark.django_db


def stored(content: Any, file: str = "out.json") -> tuple[Run, ...]:
    text = content if isinstance(content, str) else json.dumps(content)
    return import_results(make_project(), text.encode(), file, by=None)


def case() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FILES / "cases/11/pfdup.json").read_text())
    return found


def row(**changes: Any) -> dict[str, Any]:
    first = copy.deepcopy(case()["results"]["results"][0])
    return {**first, **changes}


def keys(*rows: dict[str, Any]) -> list[str]:
    """Return the scenarios of the rows' trials, in the order of their runs."""
    runs = stored({"results": {"results": list(rows)}})
    return [
        trial.scenario.key for run in runs for trial in Trial.objects.filter(run=run).order_by("position")
    ]


def test_tests_with_one_description_stay_apart() -> None:
    (run,) = stored(case())
    trials = list(Trial.objects.filter(run=run).order_by("position"))
    assert [(trial.scenario.key, trial.index) for trial in trials] == [
        ("routing (q: q0)", 0),
        ("routing (q: q1)", 0),
        ("routing (q: q2)", 0),
        ("test 4", 0),
        ("test 4", 1),
    ]
    assert (run.passed, run.failed) == (4, 1)


def test_cost_and_tokens_are_kept() -> None:
    (run,) = stored(case())
    assert run.cost_usd == pytest.approx(0.05)
    assert (run.tokens_in, run.tokens_out) == (35, 15)
    trial = Trial.objects.filter(run=run).earliest("position")
    assert (trial.cost_usd, trial.tokens_in, trial.tokens_out) == (0.01, 7, 3)


def test_the_real_file_has_two_comparable_runs() -> None:
    runs = stored((FILES / "promptfoo.jsonl").read_text(), "one.jsonl")
    assert [(run.target.name, run.model, run.passed, run.failed, run.errors) for run in runs] == [
        ("plain", "file://prov.js", 3, 2, 1),
        ("kind", "file://prov.js", 4, 1, 1),
    ]
    scenarios = [{trial.scenario_id for trial in run.trial_set.all()} for run in runs]
    assert scenarios[0] == scenarios[1]
    assert len(scenarios[0]) == 6
    assert [run.cost_usd for run in runs] == [pytest.approx(0.0615)] * 2
    assert [(run.tokens_in, run.tokens_out) for run in runs] == [(500, 100)] * 2


def test_cached_rows_are_marked_and_have_no_time() -> None:
    cached = {"output": "a", "cached": True, "tokenUsage": {"cached": 10, "total": 10}}
    (run,) = stored({"results": {"results": [row(), row(testIdx=1, latencyMs=0, response=cached)]}})
    document = run_document(run.pk)
    assert document["run"]["warnings"] == [
        "promptfoo answered 1 of 2 tests from its cache; their times are not known."
    ]
    first, second = document["trials"]
    assert (first["seconds"], first["warnings"]) == (0.5, [])
    assert (second["seconds"], second["usage"]) == (None, None)
    assert second["warnings"] == ["promptfoo answered this test from its cache, so its time is not known."]


def test_a_test_that_is_repeated_is_one_scenario() -> None:
    one, two = ({"vars": {"q": name}, "assert": [{"type": "contains", "value": "x"}]} for name in "ab")
    rows = [row(testIdx=n, testCase=each) for n, each in enumerate((one, two, one, two))]
    assert keys(*rows) == ["test 1", "test 2", "test 1", "test 2"]


def test_equal_descriptions_and_variables_are_numbered() -> None:
    cases = [{"description": "d", "vars": {"q": "a"}, "assert": [{"type": kind}]} for kind in ("x", "y")]
    assert keys(*(row(testIdx=n, testCase=each) for n, each in enumerate(cases))) == [
        "d (q: a)",
        "d (q: a) #2",
    ]


def test_long_variables_are_cut_and_stay_apart() -> None:
    cases = [{"description": "d", "vars": {"q": "a" * 5000 + end}} for end in "xy"]
    first, second = keys(*(row(testIdx=n, testCase=each) for n, each in enumerate(cases)))
    assert first != second
    assert len(first) < 100 and first.startswith("d (q: aaa")


def test_prompts_are_told_by_their_id_not_by_their_place() -> None:
    places = [("one", "p1"), ("one", "p2"), ("two", "p1"), ("two", "p2")]
    rows = [
        row(provider={"id": provider}, promptId=prompt, promptIdx=n)
        for n, (provider, prompt) in enumerate(places)
    ]
    assert keys(*rows) == ["routing, prompt 1", "routing, prompt 2"] * 2


def test_lines_that_are_no_results_are_counted() -> None:
    lines = [json.dumps(row()), "{broken", "[]"]
    (run,) = stored("\n".join(lines), "one.jsonl")
    assert (run.trials, run.warnings) == (1, ["Entries that are no results were skipped: 2."])


def test_a_single_line_is_read_too() -> None:
    (run,) = stored(json.dumps(row()), "one.jsonl")
    assert run.trials == 1
