"""Results of skill-creator: `benchmark.json`, `grading.json` with `timing.json`, or its workspace folder.

Each configuration, such as `with_skill`, is a run of its own, and the one with the skill is compared with the other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from statistics import fmean
from typing import Any, NamedTuple

from evaluators.model import Usage
from evaluators.transcripts.reading import decode_text
from runs.exchange.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    as_count,
    decode_storable_json,
    describe_left_out,
    key_of_text,
    list_of,
    number_of,
    object_of,
    read_time,
)
from scenarios.formats.agent_skills.case_lists import key_of_id, statement_ids

BENCHMARK, GRADING, TIMING, CASE = "benchmark.json", "grading.json", "timing.json", "eval_metadata.json"
READ = (BENCHMARK, GRADING, TIMING, CASE)
"""Names of the files that are read."""
WORKSPACE = "-workspace"
"""The end of a workspace folder's name, after the skill's."""
OUTPUTS = "outputs"
"""The folder with an agent's files, which aren't results whatever they are called."""
_WITHOUT = ("without_skill", "old_skill", "baseline")
"""Configurations that the one with the skill is compared with."""
_LISTS = frozenset(("expectations", "assertion_results"))
"""Names of the judged statements."""
TOTALS = "skill-creator tells tokens as one sum, which is shown as input tokens."
UNGRADED = "skill-creator graded no assertion of this case."


_ITERATION = re.compile(r"iteration-\d+")


class _Graded(NamedTuple):
    """One graded trial, in the shape of an entry of `runs` in benchmark.json."""

    values: dict[str, Any]
    case: dict[str, Any]
    """Its eval_metadata.json, empty without one."""


class _Benchmark(NamedTuple):
    """The trials of one iteration."""

    name: str
    metadata: dict[str, Any]
    trials: list[_Graded]


def read(results_file: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return a run for each iteration and configuration, those without the skill first."""
    benchmarks = _of_folder(results_file) if results_file.members else _of_file(results_file)
    runs = [run for benchmark in benchmarks for run in _runs(benchmark, results_file.name)]
    if runs:
        warnings = (*runs[0].warnings, *_left_out(results_file.members))
        runs[0] = replace(runs[0], warnings=warnings)
    return tuple(runs)


def _left_out(members: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what of a workspace isn't read: whole iterations, and files of the others."""
    files = _read_files(members)
    whole = _whole_benchmarks(files)
    known = {path: value for path, value in files.items() if path.name in (BENCHMARK, GRADING)}
    superseded = {path for path in known if any(at in path.parent.parents for at in whole)}
    read = {path for path, value in known.items() if path.parent in whole or _is_grading(value)} | superseded
    iterations = {folder for path in members if (folder := _iteration_of(PurePosixPath(path)))}
    used = {_iteration_of(path) for path in read}
    if lost := sorted(iterations - used, key=_in_order):
        names = [folder.name for folder in lost]
        why = "because no benchmark.json or grading.json in them has judged statements"
        yield describe_left_out("iterations", names, len(iterations), why)
    if strange := [path for path in sorted(known.keys() - read) if _iteration_of(path) not in lost]:
        yield describe_left_out(
            "files", list(map(str, strange)), len(known), "because nothing in them is judged"
        )


def is_iteration(name: str) -> bool:
    """Return whether a folder has this name because it is an iteration."""
    return _ITERATION.fullmatch(name) is not None


def _iteration_of(path: PurePosixPath) -> PurePosixPath | None:
    return next((folder for folder in path.parents if _ITERATION.fullmatch(folder.name)), None)


def _of_file(results_file: ResultsFile) -> Iterator[_Benchmark]:
    value = results_file.value
    if _is_benchmark(value):
        yield _benchmark("", value, {})
    elif _is_grading(value):
        yield _Benchmark("", {}, [_Graded(_read_grading(value, {}, "with_skill"), {})])


def _of_folder(results_file: ResultsFile) -> Iterator[_Benchmark]:
    """Yield the iterations of a workspace; of one with a benchmark.json, that is read and nothing else."""
    files = _read_files(results_file.members)
    whole = _whole_benchmarks(files)
    gradings: dict[PurePosixPath, list[_Graded]] = {}
    for path, value in sorted(files.items()):
        if path.name == GRADING and _is_grading(value) and not any(at in path.parents for at in whole):
            case, graded = _grading_in_folder(path, value, files)
            gradings.setdefault(case.parent, []).append(graded)
    for at in sorted({*whole, *gradings}, key=_in_order):
        benchmark = whole.get(at)
        yield (
            _benchmark(at.name, benchmark, _cases_below(at, files))
            if benchmark
            else _Benchmark(at.name, {"skill_name": _skill_of(at)}, gradings[at])
        )


def _cases_below(folder: PurePosixPath, files: Mapping[PurePosixPath, Any]) -> dict[str, dict[str, Any]]:
    """Return what the files of cases say, by the cases' keys."""
    found = (
        object_of(value) for path, value in files.items() if path.name == CASE and folder in path.parents
    )
    return {key_of_id(case.get("eval_id")): case for case in found if "eval_id" in case}


def _read_files(members: Mapping[str, bytes]) -> dict[PurePosixPath, Any]:
    return {
        PurePosixPath(path): decode_storable_json(decode_text(content, "replace"))
        for path, content in members.items()
        if PurePosixPath(path).name in READ and OUTPUTS not in path.split("/")[:-1]
    }


def _whole_benchmarks(files: Mapping[PurePosixPath, Any]) -> dict[PurePosixPath, dict[str, Any]]:
    """Return the files called benchmark.json by their folders."""
    return {
        path.parent: value for path, value in files.items() if path.name == BENCHMARK and _is_benchmark(value)
    }


def mean_shares(members: Mapping[str, bytes]) -> dict[str, float]:
    """Return each configuration's mean share of statements by the last iteration's benchmark.json; empty without one.

    It is the mean that the file says, else that of its trials, from 0 to 1.
    """
    whole = _whole_benchmarks(_read_files(members))
    if not whole:
        return {}
    last = whole[max(whole, key=_in_order)]
    trials: dict[str, list[float]] = {}
    for trial in _benchmark("", last, {}).trials:
        shares = [score["value"] for score in _trial(trial).scores if score["name"] == "judge"]
        trials.setdefault(_configuration(trial.values), []).extend(shares)
    means = {}
    for arm, arm_shares in trials.items():
        summary = object_of(object_of(last.get("run_summary")).get(arm))
        said = number_of(object_of(summary.get("pass_rate")).get("mean"), 1)
        if said is not None or arm_shares:
            means[arm] = fmean(arm_shares) if said is None else said
    return means


def _configuration(values: Mapping[str, Any]) -> str:
    return str(values.get("configuration") or "with_skill")


def _grading_in_folder(
    path: PurePosixPath, value: dict[str, Any], files: Mapping[PurePosixPath, Any]
) -> tuple[PurePosixPath, _Graded]:
    """Return the folder of a grading's case, and the trial: `<case>/<configuration>/[run-N/]grading.json`."""
    run = path.parent
    arm = run.parent if re.fullmatch(r"run-\d+", run.name) else run
    # Without folders of configurations, a case lies in its iteration.
    has_arms = not _ITERATION.fullmatch(arm.parent.name)
    case = arm.parent if has_arms else arm
    metadata = next(
        (found for place in (case, arm, run) if (found := object_of(files.get(place / CASE)))), {}
    )
    values = _read_grading(value, object_of(files.get(run / TIMING)), arm.name if has_arms else "with_skill")
    number = re.match(r"eval-(\d+)(?:-|$)", case.name)
    case_id = int(number[1]) if number else case.name
    values["eval_id"] = metadata.get("eval_id", case_id)
    values["eval_name"] = metadata.get("eval_name") or case.name
    return case, _Graded(values, metadata)


def _read_grading(value: dict[str, Any], timing: dict[str, Any], configuration: str) -> dict[str, Any]:
    """Return a grading with its times as an entry of benchmark.json; None for what wasn't measured."""
    summary, inside = object_of(value.get("summary")), object_of(value.get("timing"))
    seconds = inside.get("total_duration_seconds") or timing.get("total_duration_seconds")
    if seconds is None:
        seconds = number_of(timing.get("duration_ms"), 1_000)
    result = {**summary, "time_seconds": seconds, "tokens": timing.get("total_tokens")}
    return {"configuration": configuration, "result": result, "expectations": _expectations(value)}


def _is_benchmark(value: Any) -> bool:
    runs = list_of(value.get("runs")) if isinstance(value, dict) else []
    return bool(runs) and all(isinstance(run, dict) and bool(_result_of(run)) for run in runs)


def _result_of(run: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run, which some authors write beside its names; empty without any."""
    return object_of(run.get("result")) or (run if "configuration" in run and "pass_rate" in run else {})


def _is_grading(value: Any) -> bool:
    """Return whether a file has judged statements; not every author writes their summary."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("summary"), dict):
        return bool(_LISTS & value.keys())
    statements = _expectations(value)
    return bool(statements) and all(isinstance(each, dict) and "passed" in each for each in statements)


def _expectations(value: dict[str, Any]) -> list[Any]:
    return next((each for name in sorted(_LISTS, reverse=True) if (each := list_of(value.get(name)))), [])


def _benchmark(name: str, value: dict[str, Any], cases: Mapping[str, dict[str, Any]]) -> _Benchmark:
    metadata = {"skill_name": value.get("skill_name"), **object_of(value.get("metadata"))}
    trials = [_Graded(each, cases.get(key_of_id(each.get("eval_id")), {})) for each in value["runs"]]
    return _Benchmark(name, metadata, trials)


def _in_order(path: PurePosixPath) -> tuple[tuple[int, str], ...]:
    """Return a key by which iteration-10 comes after iteration-9."""
    return tuple(
        (int(number[0]) if (number := re.findall(r"\d+$", part)) else -1, part) for part in path.parts
    )


def _skill_of(folder: PurePosixPath) -> str:
    named = (part.removesuffix(WORKSPACE) for part in folder.parts if part.endswith(WORKSPACE))
    return next(named, "")


def _runs(benchmark: _Benchmark, file: str) -> Iterator[ExternalRun]:
    by_arm: dict[str, list[_Graded]] = {}
    for trial in benchmark.trials:
        by_arm.setdefault(_configuration(trial.values), []).append(trial)
    metadata = benchmark.metadata
    suite = _text_of(metadata.get("skill_name")) or _skill_of(PurePosixPath(file)) or "skill"
    ids = {arm: _external_id(suite, benchmark.name, arm, graded) for arm, graded in by_arm.items()}
    base = next((arm for arm in _WITHOUT if arm in by_arm), "")
    for arm in sorted(by_arm, key=lambda arm: (arm != base, arm)):
        graded = by_arm[arm]
        model = _text_of(metadata.get("executor_model"))
        trials = tuple(_trial(each) for each in graded)
        yield ExternalRun(
            suite=suite[:200],
            format="agent_skills",
            target=f"skill-creator, {arm.replace('_', ' ')}"[:120],
            model=model[:200],
            trials=trials,
            external_id=ids[arm],
            baseline=ids[base] if base and arm != base else "",
            started=read_time(metadata["timestamp"]) if metadata.get("timestamp") else None,
            config={"skill_name": suite},
            warnings=(TOTALS,) if any(trial.usage for trial in trials) else (),
        )


def _text_of(value: Any) -> str:
    """Return a text of the metadata, empty if it is the placeholder of a template."""
    text = str(value or "").strip()
    return "" if re.fullmatch(r"<.*>", text) else text


def _external_id(suite: str, iteration: str, arm: str, trials: Sequence[_Graded]) -> str:
    """Return an id by which the same results are stored once."""
    content = json.dumps([each.values for each in trials], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return "/".join(part for part in ("skill-creator", suite, iteration, arm, digest) if part)[:200]


def _trial(graded: _Graded) -> ExternalTrial:
    values, result = graded.values, _result_of(graded.values)
    written = [each for each in list_of(values.get("expectations")) if isinstance(each, dict)]
    # A statement that wasn't judged is neither passed nor failed.
    statements = [each for each in written if each.get("passed") is not None]
    passed, total = as_count(result.get("passed")), as_count(result.get("total"))
    if not total:
        passed, total = sum(each.get("passed") is True for each in statements), len(statements)
    share = number_of(result.get("pass_rate"), 1)
    if share is None and total:
        share = passed / total
    tokens = as_count(result.get("tokens"))
    is_graded = bool(total) and bool(statements or not written)
    name = str(values.get("eval_name") or graded.case.get("eval_name") or "")
    holds = total == passed
    return ExternalTrial(
        key=key_of_text(key_of_id(values.get("eval_id")) or name or "eval"),
        outcome=("pass" if holds else "fail") if is_graded else "error",
        description=name,
        prompt=str(graded.case.get("prompt") or ""),
        # Its scripts write 0 where no timing.json was found.
        seconds=number_of(result.get("time_seconds"), 1) or None,
        scores=(*_judge_scores(share, holds=holds), *_statements(statements)) if is_graded else (),
        error="" if is_graded else UNGRADED,
        usage=Usage(input=tokens) if tokens else None,
    )


def _judge_scores(share: float | None, *, holds: bool) -> Iterator[dict[str, Any]]:
    if share is not None:
        yield {"layer": "judge", "name": "judge", "value": share, "passed": holds}


def _statements(statements: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a score for each statement, under the name that the suite's own rubric has for it."""
    texts = [str(each.get("text") or "") for each in statements]
    for id, text, statement in zip(statement_ids(texts), texts, statements, strict=True):
        evidence = str(statement.get("evidence") or "").strip()
        yield {
            "layer": "judge",
            "name": f"criterion.{id}",
            "value": float(statement.get("passed") is True),
            "message": f"{text} Evidence: {evidence}" if evidence else text,
        }
