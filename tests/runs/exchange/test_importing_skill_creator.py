"""skill-creator's results: benchmark.json, grading.json with timing.json, and a workspace folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from runs.errors import RequestError
from runs.exchange.imports.import_results import import_results
from runs.exchange.results_files.importers import pack_folder
from runs.exchange.results_files.skill_creator import TOTALS
from runs.models import Run, RunMeasure, Trial
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.commands.calling import call
from tests.scenarios.formats.agent_skills_files import case, evals, skill

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
STATEMENTS = ("The note exists.", "It is titled X.", "No help was read.")


def expectations(*passed: bool) -> list[dict[str, Any]]:
    return [
        {"text": text, "passed": each, "evidence": f"Line {number}."}
        for number, (text, each) in enumerate(zip(STATEMENTS, passed, strict=True), start=1)
    ]


def grading(*passed: bool, name: str = "expectations", **more: Any) -> dict[str, Any]:
    good = sum(passed)
    summary = {"passed": good, "failed": 3 - good, "total": 3, "pass_rate": round(good / 3, 2)}
    return {name: expectations(*passed), "summary": summary, **more}


def entry(id: int, arm: str, number: int, *passed: bool, seconds: float, tokens: int) -> dict[str, Any]:
    graded = grading(*passed)
    result = {**graded["summary"], "time_seconds": seconds, "tokens": tokens, "tool_calls": 3, "errors": 0}
    return {
        "eval_id": id,
        "eval_name": f"Case {id}",
        "configuration": arm,
        "run_number": number,
        "result": result,
        "expectations": graded["expectations"],
        "notes": [],
    }


ENTRIES = [
    entry(0, "with_skill", 1, True, True, True, seconds=20.5, tokens=4000),
    entry(0, "with_skill", 2, True, True, False, seconds=24.0, tokens=4400),
    entry(1, "with_skill", 1, True, True, True, seconds=31.0, tokens=5000),
    entry(1, "with_skill", 2, True, False, True, seconds=30.0, tokens=5100),
    entry(0, "without_skill", 1, True, False, False, seconds=12.0, tokens=2000),
    entry(0, "without_skill", 2, False, False, False, seconds=16.0, tokens=2500),
    entry(1, "without_skill", 1, True, True, True, seconds=19.0, tokens=2600),
    entry(1, "without_skill", 2, False, True, True, seconds=18.0, tokens=2700),
]


def benchmark(entries: list[dict[str, Any]] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "skill_name": "notetool",
            "executor_model": "a-model",
            "timestamp": "2026-11-01T10:00:00Z",
            "evals_run": [0, 1],
            **metadata,
        },
        "runs": ENTRIES if entries is None else entries,
        "run_summary": {},
    }


def own_mean(arm: str, name: str) -> float:
    """Return a mean as skill-creator computes it: over the runs of a configuration."""
    return fmean(each["result"][name] for each in ENTRIES if each["configuration"] == arm)


def mean(run: Run, layer: str, name: str) -> float:
    return RunMeasure.objects.get(run=run, scenario=None, measure__layer=layer, measure__name=name).mean


def store(value: Any, file: str = "benchmark.json", project: Any = None) -> tuple[Run, ...]:
    return import_results(project or make_project(), json.dumps(value).encode(), file, by=None)


def test_a_benchmark_is_a_run_for_each_configuration_with_skill_creators_means():
    without, with_skill = store(benchmark())
    assert (without.target.name, with_skill.target.name) == (
        "skill-creator, without skill",
        "skill-creator, with skill",
    )
    assert (with_skill.suite.name, with_skill.suite.format, with_skill.model) == (
        "notetool",
        "agent_skills",
        "a-model",
    )
    for run, arm in ((without, "without_skill"), (with_skill, "with_skill")):
        assert mean(run, "judge", "judge") == pytest.approx(own_mean(arm, "pass_rate"))
        assert mean(run, "trial", "seconds") == pytest.approx(own_mean(arm, "time_seconds"))
        assert mean(run, "trial", "tokens_in") == pytest.approx(own_mean(arm, "tokens"))
        assert TOTALS in run.warnings
    assert (with_skill.passed, with_skill.failed, with_skill.errors) == (2, 2, 0)


def test_the_run_with_the_skill_is_compared_with_the_one_without():
    without, with_skill = store(benchmark())
    with_skill.refresh_from_db()
    assert with_skill.baseline_id == without.pk


def test_statements_have_the_names_of_the_suites_rubric():
    project = make_project()
    files = skill(evals(case(0, assertions=list(STATEMENTS)), case(1, assertions=list(STATEMENTS))))
    contents = {path: text.encode() for path, text in files.items()}
    (imported,) = import_files(Bundle("notetool", contents), project=project, by=None)
    _, with_skill = store(benchmark(), project=project)
    assert with_skill.suite_version_id == imported.version.pk
    trial = Trial.objects.filter(run=with_skill).first()
    named = {each["name"]: each for each in trial.scores if each["layer"] == "judge"}
    spec = imported.version.scenario_versions.get(scenario__key="eval-0").spec
    assert {f"criterion.{one.id}" for one in spec.criteria.judge.rubric.criteria} <= set(named)
    assert named["criterion.the_note_exists"]["message"] == "The note exists. Evidence: Line 1."


def test_the_same_benchmark_is_stored_once():
    project = make_project()
    first = store(benchmark(), project=project)
    again = import_results(project, json.dumps(benchmark(), indent=1).encode(), "copy.json", by=None)
    assert [run.pk for run in again] == [run.pk for run in first]


def write(folder: Path, path: str, value: Any) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))


def workspace(at: Path) -> Path:
    """Write a workspace with two iterations: gradings alone, and gradings with a benchmark."""
    folder = at / "notetool-workspace"
    first = "iteration-1/eval-3-add"
    write(folder, f"{first}/eval_metadata.json", {"eval_id": 3, "eval_name": "add", "prompt": "Add X."})
    write(folder, f"{first}/with_skill/grading.json", grading(True, True, True, name="assertion_results"))
    write(folder, f"{first}/with_skill/timing.json", {"total_tokens": 84852, "duration_ms": 23332})
    write(folder, f"{first}/with_skill/outputs/grading.json", grading(False, False, False))
    write(folder, f"{first}/old_skill/run-1/grading.json", grading(True, False, False))
    write(folder, f"{first}/old_skill/run-1/timing.json", {"total_tokens": 10, "total_duration_seconds": 8.5})
    write(folder, f"{first}/old_skill/run-2/grading.json", grading(True, True, False))
    write(folder, "iteration-10/benchmark.json", benchmark(ENTRIES[:1], skill_name="<skill-name>"))
    write(folder, "iteration-10/eval-0/with_skill/grading.json", grading(False, False, False))
    return folder


def test_a_workspace_is_read_by_iteration(tmp_path):
    runs = import_results(make_project(), pack_folder(workspace(tmp_path)), "notetool-workspace", by=None)
    assert [(run.target.name, run.trials, run.passed) for run in runs] == [
        ("skill-creator, old skill", 2, 0),
        ("skill-creator, with skill", 1, 1),
        ("skill-creator, with skill", 1, 1),
    ]
    assert runs[1].suite.name == "notetool"
    trial = Trial.objects.get(run=runs[1])
    assert (trial.scenario_version.scenario.key, trial.seconds, trial.tokens_in) == ("eval-3", 23.332, 84852)
    assert trial.scenario_version.spec.prompt == "Add X."
    assert mean(runs[0], "judge", "judge") == pytest.approx((0.33 + 0.67) / 2)


def test_iterations_and_files_that_are_left_out_are_counted_and_named(tmp_path):
    folder = workspace(tmp_path)
    for number in range(2, 9):
        write(folder, f"iteration-{number}/notes/summary.json", {"score": 1})
    write(folder, "iteration-9/eval-1/with_skill/grading.json", {"score": 1})
    write(folder, "iteration-1/eval-4/with_skill/grading.json", {"verdict": "good"})
    runs = import_results(make_project(), pack_folder(folder), "notetool-workspace", by=None)
    assert [text for text in runs[0].warnings if "left out" in text] == [
        "8 of 10 iterations left out, because no benchmark.json or grading.json in them has judged statements: "
        "iteration-2, iteration-3, iteration-4, iteration-5, iteration-6 and 3 more.",
        "1 of 7 files left out, because nothing in them is judged: "
        "notetool-workspace/iteration-1/eval-4/with_skill/grading.json.",
    ]
    assert not [text for run in runs[1:] for text in run.warnings if "left out" in text]


def test_nothing_is_left_out_of_a_whole_workspace(tmp_path):
    runs = import_results(make_project(), pack_folder(workspace(tmp_path)), "notetool-workspace", by=None)
    assert not [text for run in runs for text in run.warnings if "left out" in text]


def test_an_iteration_alone_knows_its_skill(tmp_path):
    make_project()
    called = call("import_results", str(workspace(tmp_path) / "iteration-1"))
    assert re.search(r"notetool on skill-creator, with skill, 1/1 passed", called.out), called


def test_a_grading_alone_is_one_trial():
    (run,) = store(grading(True, True, False, timing={"total_duration_seconds": 191.0}), "grading.json")
    trial = Trial.objects.get()
    assert (run.trials, run.failed, trial.seconds) == (1, 1, 191.0)
    assert mean(run, "judge", "judge") == pytest.approx(0.67)


def test_a_grading_without_a_summary_counts_its_statements(tmp_path):
    first = "notetool-workspace/iteration-1"
    write(
        tmp_path, f"{first}/eval-0/with_skill/grading.json", {"expectations": expectations(True, True, False)}
    )
    write(tmp_path, f"{first}/eval-1/with_skill/grading.json", grading(True, True, True))
    (run,) = import_results(make_project(), pack_folder(tmp_path), "results", by=None)
    assert (run.trials, run.passed, run.failed) == (2, 1, 1)
    assert mean(run, "judge", "judge") == pytest.approx((2 / 3 + 1) / 2)


def test_a_case_without_folders_of_configurations_is_one_with_the_skill(tmp_path):
    write(tmp_path, "notetool-workspace/iteration-1/eval-add/grading.json", grading(True, True, True))
    (run,) = import_results(make_project(), pack_folder(tmp_path), "results", by=None)
    assert run.target.name == "skill-creator, with skill"
    assert Trial.objects.get().scenario_version.scenario.key == "eval-add"


def test_a_case_may_be_described_in_the_folder_of_a_configuration(tmp_path):
    arm = "notetool-workspace/iteration-1/add/with_skill"
    write(tmp_path, f"{arm}/eval_metadata.json", {"eval_id": 7, "prompt": "Add X."})
    write(tmp_path, f"{arm}/run-1/grading.json", grading(True, True, True))
    import_results(make_project(), pack_folder(tmp_path), "results", by=None)
    version = Trial.objects.get().scenario_version
    assert (version.scenario.key, version.spec.prompt) == ("eval-7", "Add X.")


def test_a_statement_that_was_not_judged_is_not_failed():
    missing = [{**each, "passed": None} for each in expectations(True, True, True)]
    (run,) = store(
        {"expectations": missing, "summary": {"passed": 0, "total": 3, "pass_rate": 0}}, "grading.json"
    )
    assert (run.failed, run.errors) == (0, 1)


def test_a_benchmark_takes_prompts_from_the_files_of_its_cases(tmp_path):
    unnamed = {name: value for name, value in ENTRIES[0].items() if name != "eval_name"}
    write(tmp_path, "iteration-1/benchmark.json", benchmark([unnamed]))
    case = {"eval_id": 0, "eval_name": "add", "prompt": "Add X."}
    write(tmp_path, "iteration-1/eval-0/eval_metadata.json", case)
    import_results(make_project(), pack_folder(tmp_path), "results", by=None)
    spec = Trial.objects.get().scenario_version.spec
    assert (spec.prompt, spec.description) == ("Add X.", "add")


def test_what_was_not_measured_is_not_zero():
    result = {**ENTRIES[0]["result"], "time_seconds": 0.0, "tokens": 0}
    store(benchmark([{**ENTRIES[0], "result": result}]))
    trial = Trial.objects.get()
    assert (trial.seconds, trial.tokens_in) == (None, None)


def test_the_skill_may_be_named_at_the_top():
    (run,) = store({"skill_name": "notetool", "runs": ENTRIES[:1]})
    assert run.suite.name == "notetool"


def test_figures_may_stand_beside_the_names_of_a_run():
    flat = {"eval_name": "add", "configuration": "with_skill", "pass_rate": 1, "passed": 6, "total": 6}
    (run,) = store({"runs": [flat], "run_summary": {}})
    assert (run.trials, run.passed) == (1, 1)
    assert Trial.objects.get().scenario_version.scenario.key == "add"


def test_a_benchmark_without_results_says_what_to_import():
    with pytest.raises(RequestError, match="import the folder with its grading"):
        store({"metadata": {}, "runs": [], "run_summary": {}})


def test_a_case_without_graded_assertions_is_an_error():
    bare = {**ENTRIES[0], "result": {"time_seconds": 3.0, "tokens": 5}, "expectations": []}
    (run,) = store(benchmark([bare]))
    assert (run.errors, Trial.objects.get().error) == (1, "skill-creator graded no assertion of this case.")


def test_a_timing_alone_has_no_results():
    with pytest.raises(RequestError, match="no results found"):
        store({"total_tokens": 5, "duration_ms": 3}, "timing.json")
    assert not Run.objects.exists()


def test_a_folder_without_results_says_what_it_looked_for(tmp_path):
    make_project()
    called = call("import_results", str(tmp_path))
    assert called.code == 2
    assert "benchmark.json, grading.json" in called.err
