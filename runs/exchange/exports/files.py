"""Write documents to files; for a job of GitHub Actions also step outputs and annotations."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from evaluators.grading.suite_result import SuiteRun, suite_result
from evaluators.redaction import redact_json, redact_patterns
from evaluators.statistics.measure_change import ChangeVerdict
from runs.errors import NotWritable
from runs.exchange.exports.document import first_trials, trace_json
from runs.exchange.exports.result_formats import Files, junit_xml
from runs.models import Run
from runs.results.failure_reasons import trial_reasons
from scenarios.annotations import MOST, FileAnnotation, on_disk
from scenarios.models import SuiteEntry

RESULT_FILES = ("json_file", "junit_file", "summary_file", "archive_file", "output_dir", "dump_traces")
"""Options that name files of results."""
DOCUMENT_FILES = RESULT_FILES[:2]
"""Those that are written from run documents."""
JOB_SUMMARY = "-"
"""In place of a file: the job summary of GitHub Actions."""


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a file atomically; create missing folders.

    Special files such as /dev/stdout are written to, not replaced. Raises `NotWritable`.
    """
    content = text.encode() if isinstance(text, str) else text
    with named_in_errors(path):
        place = _place(path)
        if place.exists() and not place.is_file():
            place.write_bytes(content)
        else:
            _replace(place, content)


def check_places(options: Mapping[str, Any]) -> None:
    """Create the folders of the output files that are named in options, before the run. Raises `NotWritable`."""
    folders = [f"{folder}/any.json" for folder in (options["output_dir"], options["dump_traces"]) if folder]
    for name in (*map(options.get, DOCUMENT_FILES), options["archive_file"], *folders):
        if name:
            _check(Path(name))
    check_summary_file(options["summary_file"])


def check_summary_file(name: str | None) -> None:
    """Check that a summary can be written. Raises `NotWritable`."""
    if name:
        _check(_summary_path(name))


def write_summary(name: str, summaries: Sequence[str]) -> None:
    """Write Markdown to a file, or append it to the job summary of GitHub Actions for `-`. Raises `NotWritable`."""
    path, text = _summary_path(name), "\n".join(summaries)
    if name != JOB_SUMMARY:
        write_atomically(path, text)
        return
    with named_in_errors(path), path.open("a", encoding="utf-8") as stream:
        # An earlier step's text may lack its last line break.
        stream.write("\n" + text)


def _summary_path(name: str) -> Path:
    if name != JOB_SUMMARY:
        return Path(name)
    place = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not place:
        raise NotWritable(
            "--summary-file - appends to the file that $GITHUB_STEP_SUMMARY names, but it isn't set."
            " Outside GitHub Actions, give a file."
        )
    return Path(place)


def _check(path: Path) -> None:
    with named_in_errors(path):
        place = _place(path)
        if not place.exists() or place.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place.parent).close()


def _place(path: Path) -> Path:
    """Return a path's target, so that a link stays a link."""
    place = path.resolve()
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return place


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        # mkstemp's file is readable only by its owner, unlike other outputs.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink()
        raise


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Name the path in errors of the block. Raises `NotWritable`."""
    try:
        yield
    except OSError as error:
        raise NotWritable(f"{path} can't be written: {error.strerror}. Use another path.") from error


def write_files(
    documents: Sequence[Mapping[str, Any]], options: Mapping[str, Any], files: Files | None = None
) -> None:
    """Write run documents as JSON and JUnit XML, where options name a file. Raises `NotWritable`.

    `files` are those of the scenarios, by run and key.
    """
    if options["json_file"]:
        write_atomically(Path(options["json_file"]), json.dumps({"runs": list(documents)}, indent=2) + "\n")
    if options["junit_file"]:
        write_atomically(Path(options["junit_file"]), junit_xml(documents, files))


def write_suite_result(folder: str, run: SuiteRun) -> Path:
    """Write a run's EvalSuiteResult into a folder and return its path; the name has run and suite."""
    name = re.sub(r"[^\w.-]+", "-", run.tool_name or "evals")
    path = Path(folder) / f"{name}.{run.tier}.run-{run.number or run.run_id}.json"
    write_atomically(path, json.dumps(suite_result(run), indent=2, ensure_ascii=False) + "\n")
    return path


def write_transcripts(folder: Path, run: Run) -> dict[str, Path]:
    """Write the transcript of the first trial of each scenario that failed or hit an error; secrets are redacted.

    Returns the files by scenario key. Raises `NotWritable`.
    """
    written: dict[str, Path] = {}
    trials = run.trial_set.filter(outcome__in=("fail", "error")).select_related("scenario", "transcript")
    for trial in trials.order_by("scenario__key", "-outcome", "index").iterator():
        key, stored = trial.scenario.key, getattr(trial, "transcript", None)
        text = (stored.unpack().text if stored else "") or trial.answer
        if key not in written and text:
            name = re.sub(r"[^\w.-]+", "-", key)
            path = folder / f"run-{run.pk}" / f"{name}.{trial.index}.txt"
            write_atomically(path, redact_patterns(text))
            written[key] = path
    return written


def write_traces(folder: Path, run: Run) -> None:
    """Write the trace of each of a run's trials that has one, as a JSON list; secrets are redacted. Raises `NotWritable`."""
    trials = run.trial_set.select_related("scenario", "transcript").exclude(transcript=None)
    for trial in trials.iterator():
        trace = trace_json(trial)
        if trace is not None:
            key = re.sub(r"[^\w.-]+", "-", trial.scenario.key)
            path = folder / f"run-{run.pk}" / f"{key}.{trial.index}.trace.json"
            write_atomically(path, json.dumps(redact_json(trace), indent=2, ensure_ascii=False) + "\n")


NO_VERDICT = "none"
_BY_URGENCY = (
    ChangeVerdict.REGRESSED.value,
    NO_VERDICT,
    ChangeVerdict.NOT_COMPARABLE.value,
    ChangeVerdict.TOO_LITTLE.value,
)
"""The launch has the first of these verdicts that any of its runs has, else its first run's."""


def write_outputs(documents: Sequence[Mapping[str, Any]], deciding: int) -> None:
    """Append verdict, pass rate (0 to 1), cost in USD and run ids to the file that $GITHUB_OUTPUT names, if it is set.

    The first `deciding` runs give verdict and pass rate. Raises `NotWritable`.
    """
    place = os.environ.get("GITHUB_OUTPUT", "")
    if not place:
        return
    runs = [each["run"] for each in documents]
    lines = [f"{name}={value}\n" for name, value in list_outputs(runs, deciding).items()]
    path = Path(place)
    with named_in_errors(path), path.open("a", encoding="utf-8") as stream:
        stream.writelines(lines)


def list_outputs(runs: Sequence[Mapping[str, Any]], deciding: int) -> dict[str, str]:
    """Return the outputs of a launch's runs by name; empty texts for what is unknown."""
    verdicts = [run["verdict"] or NO_VERDICT for run in runs[:deciding]]
    rates = [run["pass_rate"] for run in runs[:deciding] if run["pass_rate"] is not None]
    costs = [run["cost_usd"] for run in runs if run["cost_usd"] is not None]
    return {
        "verdict": next((each for each in _BY_URGENCY if each in verdicts), verdicts[0]),
        "pass_rate": f"{fmean(rates):.4f}" if rates else "",
        "cost_usd": f"{sum(costs):.6f}" if costs else "",
        "run_id": ",".join(run["uuid"] for run in runs),
        "run": ",".join(str(run["id"]) for run in runs),
    }


def scenario_files(runs: Iterable[Run], roots: Sequence[str]) -> dict[int, dict[str, tuple[str, int]]]:
    """Return the file and line of each run's scenarios by key, as paths in the checkout. A query for each run."""
    return {run.pk: _files(run, roots) for run in runs}


def _files(run: Run, roots: Sequence[str]) -> dict[str, tuple[str, int]]:
    columns = ("scenario__key", "content__file", "content__line")
    entries = SuiteEntry.objects.filter(suite_version=run.suite_version_id)
    rows = entries.values_list(*(f"scenario_version__{each}" for each in columns))
    return {key: (on_disk(file, roots), line or 1) for key, file, line in rows if file}


def broken_scenarios(
    document: Mapping[str, Any], files: Mapping[str, tuple[str, int]]
) -> list[FileAnnotation]:
    """Return an annotation for each scenario that fails or hits errors, the regressed ones first."""
    run, reasons = document["run"], _reasons(first_trials(document))
    broke = [key for measure in run["measures"][:1] for key in measure["broke"]]
    known = [key for key in [*broke, *run["regressions"], *reasons] if key in files]
    return [
        FileAnnotation(*files[key], _message(run, key, reasons.get(key, ())))
        for key in list(dict.fromkeys(known))[:MOST]
    ]


def _reasons(trials: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for trial in trials:
        if trial["outcome"] in ("fail", "error"):
            reasons.setdefault(trial["scenario"], []).extend(trial_reasons(trial))
    return {key: list(dict.fromkeys(own)) for key, own in reasons.items()}


def _message(run: Mapping[str, Any], key: str, reasons: Sequence[str]) -> str:
    state = f"no longer passes (baseline: run {run['baseline']})" if key in run["regressions"] else "fails"
    return f"{key} on {run['target']} {state}." + "".join(f" {each}" for each in reasons[:3])
