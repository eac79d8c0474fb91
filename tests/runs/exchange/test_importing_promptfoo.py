"""promptfoo's results: which rows are trials of one scenario, what they cost, and which came from its cache."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from runs.errors import RequestError
from runs.exchange.exports.document import run_document
from runs.exchange.imports.import_results import import_results
from runs.models import Run, Trial
from tests.builders import make_project

FILES = Path(__file__).parents[2] / "files"
pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


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


def test_a_cost_of_0_that_no_provider_stated_is_not_measured() -> None:
    answer = {"output": "a", "tokenUsage": {"prompt": 10, "completion": 2}}
    rows = [row(cost=0, response=answer), row(cost=0, testIdx=1, response={**answer, "cost": 0})]
    (run,) = stored({"results": {"results": rows}})
    assert [each.cost_usd for each in Trial.objects.filter(run=run).order_by("position")] == [None, 0.0]


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
    assert (run.trials, run.warnings) == (1, ["Entries that aren't results were skipped: 2."])


def test_a_single_line_is_read_too() -> None:
    (run,) = stored(json.dumps(row()), "one.jsonl")
    assert run.trials == 1


def providers() -> dict[str, Any]:
    """promptfoo 0.121.20: one prompt, two providers, six tests."""
    found: dict[str, Any] = json.loads((FILES / "cases/26/out.json").read_text())
    return found


def test_two_providers_have_the_same_scenarios() -> None:
    runs = {run.target.name: run for run in stored(providers())}
    plain, kind = (
        [
            (each.scenario.key, each.outcome)
            for each in Trial.objects.filter(run=runs[name]).order_by("position")
        ]
        for name in ("plain", "kind")
    )
    assert [key for key, _ in plain] == [key for key, _ in kind]
    assert [outcome for _, outcome in plain] == ["fail", "pass", "error", "pass", "fail", "pass"]
    assert [outcome for _, outcome in kind] == ["pass", "pass", "error", "pass", "fail", "pass"]
    for run in runs.values():
        assert run.cost_usd == pytest.approx(0.0615) and (run.tokens_in, run.tokens_out) == (500, 100)


def test_providers_with_a_prompt_each_are_compared() -> None:
    content = providers()
    for row in content["results"]["results"]:
        row["promptId"] = row["provider"]["label"]
    plain, kind = stored(content)
    both = [
        set(Trial.objects.filter(run=each).values_list("scenario__key", flat=True)) for each in (plain, kind)
    ]
    assert both[0] == both[1] and "greets Ada" in both[0]


def test_prompts_of_a_provider_are_told_apart_by_id_and_label() -> None:
    rows = [
        row(promptIdx=n, promptId="same", prompt={"raw": "Hi", "label": label}, provider={"id": provider})
        for n, (provider, label) in enumerate([("a", "short"), ("a", "long"), ("b", "short"), ("b", "long")])
    ]
    found = keys(*rows)
    assert len(set(found)) == 2 and found[:2] == found[2:]
    assert [each.rpartition(", ")[2] for each in found[:2]] == ["prompt 1", "prompt 2"]


def test_metrics_and_weights_are_kept() -> None:
    plain = next(run for run in stored(providers()) if run.target.name == "plain")
    first = Trial.objects.filter(run=plain).order_by("position").first()
    assert first is not None
    (tone,) = [each for each in first.scores if each["name"] == "tone"]
    assert (tone["value"], tone["weight"], tone["detail"]["type"]) == (0.0, 2.0, "icontains")


def test_repeats_are_trials_of_one_test() -> None:
    content = providers()
    rows = content["results"]["results"]
    again = [{**each, "testIdx": each["testIdx"] + 6, "id": f"{each['id']}-2"} for each in rows]
    content["results"]["results"] = [*rows, *again]
    for run in stored(content):
        found = Trial.objects.filter(run=run)
        assert found.count() == 12 and found.values("scenario").distinct().count() == 6


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("one.xml", "<promptfoo>\n  <evalId>e</evalId>", "promptfoo's XML"),
        ("one.csv", "Description,name,[plain] Greet {{name}},Status,Score\n", "promptfoo's CSV"),
        ("one.yaml", "evalId: eval-x\nresults:\n  version: 3\n  timestamp: t\n", "promptfoo's YAML output"),
    ],
)
def test_other_output_is_refused_with_the_command_that_writes_one_that_is_read(
    file: str, text: str, what: str
) -> None:
    with pytest.raises(RequestError, match=f"not read yet: {what}. .*`promptfoo eval -o results.json`"):
        stored(text, file)
