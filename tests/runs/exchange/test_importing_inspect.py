"""Logs of Inspect as results: real logs against counts by hand and Inspect's own summaries."""

from __future__ import annotations

import io
import json
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from runs.errors import RequestError
from runs.exchange.imports.import_results import import_results
from runs.models import Run, Trial
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
FILES = Path(__file__).parents[2] / "files/inspect"
INDEX: dict[str, Any] = json.loads((FILES / "index.json").read_text())
LOGS = INDEX["files"]


def import_log(content: Any, file: str = "log.json") -> Run:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    (run,) = import_results(make_project(), raw, file, by=None)
    return run


def log() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FILES / "capitals.json").read_text())
    return found


def summaries(name: str) -> list[dict[str, Any]]:
    """Return what Inspect itself says of each sample, read without evalhub's readers."""
    if name.endswith(".json"):
        return list(log()["samples"])
    raw = (FILES / name).read_bytes()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entry = archive.getinfo("summaries.json")
    # The only frames of Zstandard after the entry's own header begin with these bytes.
    begin = raw.index(b"\x28\xb5\x2f\xfd", entry.header_offset)
    found: list[dict[str, Any]] = json.loads(
        import_module("backports.zstd").decompress(
            raw[begin : entry.header_offset + entry.compress_size + 44]
        )
    )
    return found


@pytest.mark.parametrize("name", LOGS)
def test_counts_are_those_made_by_hand(name: str) -> None:
    run = import_log((FILES / name).read_bytes(), name)
    assert (run.suite.name, run.target.name, run.model) == ("capitals", "inspect", "mockllm/model")
    counts = (run.trials, run.passed, run.failed, run.errors)
    assert counts == tuple(INDEX[key] for key in ("trials", "passed", "failed", "errors"))
    assert run.trial_set.values("scenario").distinct().count() == INDEX["scenarios"]
    assert (run.tokens_in, run.tokens_out) == (INDEX["input"], INDEX["output"])
    usages = [each.detail["usage"] for each in run.trial_set.all() if "usage" in each.detail]
    assert sum(each["cache_read"] for each in usages) == INDEX["cache_read"]
    notes = [note for each in run.trial_set.all() for note in each.detail.get("warnings", ())]
    assert notes == ["Inspect ended this sample by its message limit of 6.0."] * INDEX["limited"]
    assert run.cost_usd is None


@pytest.mark.parametrize("name", LOGS)
def test_every_trial_is_what_inspect_says_of_its_sample(name: str) -> None:
    run = import_log((FILES / name).read_bytes(), name)
    trials = {(each.scenario.key, each.index + 1): each for each in run.trial_set.select_related("scenario")}
    told = {(each["id"], each["epoch"]): each for each in summaries(name)}
    assert trials.keys() == told.keys()
    for key, sample in told.items():
        trial, scores = trials[key], sample["scores"]
        outcome = {"C": "pass", "I": "fail"}[scores["match"]["value"]] if scores else "error"
        assert (trial.outcome, trial.seconds) == (outcome, sample["total_time"])
        stored = {each["name"]: each["value"] for each in trial.scores if each["layer"] == "assertions"}
        assert stored.get("length") == (scores["length"]["value"] if scores else None)
        assert trial.finished is not None and trial.finished.isoformat() == sample["completed_at"]


def test_the_pass_rate_is_inspects_accuracy() -> None:
    results = log()["results"]["scores"]
    (accuracy,) = [each["metrics"]["accuracy"]["value"] for each in results if each["name"] == "match"]
    run = import_log((FILES / "capitals.json").read_bytes())
    assert run.passed / (run.passed + run.failed) == accuracy


SUITE = b"name: spain\ntarget: {binary: taskmgr}\ntask: {prompt: x}\nevaluation: {gates: [{type: file_exists, path: a}]}\n"


def test_layer_1_is_computed_by_the_tool_of_the_stored_suite() -> None:
    project = make_project()
    files = {
        f"{key}.yaml": SUITE.replace(b"spain", key.encode())
        for key in ("spain", "france", "italy", "broken", "long")
    }
    import_files(Bundle("capitals", files), project=project, by=None)
    (run,) = import_results(project, (FILES / "capitals.eval").read_bytes(), "log.eval", by=None)
    first = Trial.objects.filter(run=run, scenario__key="spain").earliest("index")
    commands = list(first.commands.order_by("n").values_list("line", "exit_code"))
    assert commands == [("taskmgr --help", None), ("taskmgr create --fmt json x", 127)]


def test_the_same_eval_is_stored_once_whatever_its_format() -> None:
    project, content = make_project(), log()
    (first,) = import_results(project, json.dumps(content).encode(), "a.json", by=None)
    (again,) = import_results(project, json.dumps(content, indent=1).encode(), "b.json", by=None)
    assert first == again


def test_what_inspect_did_not_score_is_an_error_and_not_a_fail() -> None:
    content = log()
    content["samples"] = content["samples"][:2]
    for sample in content["samples"]:
        sample |= {"scores": None, "error": None}
    run = import_log(content)
    assert (run.errors, run.failed) == (2, 0)
    assert {trial.error for trial in run.trial_set.all()} == {"Inspect did not score this sample."}
    assert "The log has 2 of 10 samples; the others did not run." in run.warnings


def test_an_eval_that_did_not_end_is_no_baseline() -> None:
    run = import_log({**log(), "status": "error", "error": {"message": "No network."}})
    assert (run.state, run.warnings) == ("cancelled", ["The eval did not end: error (No network.)."])


@pytest.mark.parametrize(
    ("value", "outcome", "score"),
    [
        ("C", "pass", 1.0), ("I", "fail", 0.0), ("P", "fail", 0.5), ("N", "fail", 0.0), (True, "pass", 1.0),
        (0.99, "fail", 0.99), (5, "pass", 5.0), ("yes", "pass", 1.0), ("0.25", "fail", 0.25),
        ({"a": 1, "b": 0}, "pass", 1.0), ("good", "error", None), ("nan", "error", None), (None, "error", None),
    ],
)  # fmt: skip
def test_a_value_counts_as_inspect_counts_it(value: Any, outcome: str, score: float | None) -> None:
    content = log()
    content["samples"] = [each for each in content["samples"] if each["id"] == "france"][:1]
    content["samples"][0]["scores"] = {"match": {"value": value}}
    trial = import_log(content).trial_set.get()
    assert (trial.outcome, trial.composite) == (outcome, score)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"version": 2, "eval": {}, "plan": {}, "samples": []}, "no samples in this log of Inspect"),
        ((FILES / "capitals.eval").read_bytes()[:2000], "can't be unpacked"),
    ],
    ids=["empty", "cut"],
)
def test_a_log_without_samples_is_refused(content: Any, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        import_log(content)
    assert not Run.objects.exists()
