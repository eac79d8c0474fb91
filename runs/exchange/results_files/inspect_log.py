"""Logs of Inspect, as JSON or in its own format (.eval): a scenario for each sample, a trial for each of its epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import format_count
from evalhub.lib.storable_text import storable_json
from evaluators.model import plausible_cost
from evaluators.transcripts import inspect_log
from evaluators.transcripts.inspect_log import is_inspect_archive
from evaluators.transcripts.nesting import without_deep_values
from evaluators.transcripts.reading import UnreadableTranscript
from runs.errors import RequestError
from runs.exchange.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    as_count,
    decode_storable_json,
    key_of_text,
    list_of,
    number_of,
    object_of,
    read_time,
    suite_name,
)

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's own values: correct, partial, incorrect, no answer."""
_TIME_LIMITS = ("time", "working")
UNSCORED = "Inspect did not score this sample."


def read(results_file: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return the run of a log."""
    if results_file.members:
        return ()
    log = object_of(
        _unpacked(results_file) if is_inspect_archive(results_file.content) else results_file.value
    )
    if not isinstance(log.get("eval"), dict) or not isinstance(log.get("plan"), dict):
        return ()
    samples = inspect_log.list_inspect_samples(log)
    if not samples:
        raise RequestError(
            f"{results_file.name}: no samples in this log of Inspect. Choose one of an eval that ran."
        )
    return (_run(log, _in_turn(log, samples), results_file.name),)


def _unpacked(results_file: ResultsFile) -> Any:
    try:
        return decode_storable_json(storable_json(inspect_log.read_log(results_file.content)))
    except UnreadableTranscript as error:
        raise RequestError(f"{results_file.name}: {error}") from error


def _in_turn(log: Mapping[str, Any], samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all samples of the data set once, then all again; a log has them as they ended."""
    ids = list_of(object_of(object_of(log.get("eval")).get("dataset")).get("sample_ids"))
    places = {str(id): place for place, id in enumerate(ids)}
    return sorted(
        samples, key=lambda each: (as_count(each.get("epoch")), places.get(str(each.get("id")), len(ids)))
    )


def _run(log: Mapping[str, Any], samples: list[dict[str, Any]], file: str) -> ExternalRun:
    about, stats = object_of(log.get("eval")), object_of(log.get("stats"))
    status = str(log.get("status") or "")
    return ExternalRun(
        suite=suite_name(about.get("task_display_name") or about.get("task"), file),
        format="inspect",
        target=str(about.get("solver") or "inspect"),
        model=str(about.get("model") or "")[:LONGEST_NAME],
        trials=tuple(_trial(sample, _main_scorer(log)) for sample in samples),
        program_version=str(object_of(about.get("packages")).get("inspect_ai") or ""),
        external_id=str(about.get("eval_id") or ""),
        started=read_time(stats.get("started_at") or about.get("created")),
        cancelled=status != "success",
        config={"task_version": about.get("task_version"), "task_args": about.get("task_args")},
        warnings=tuple(_warnings(log, len(samples))),
    )


def _warnings(log: Mapping[str, Any], samples: int) -> Iterator[str]:
    about, status = object_of(log.get("eval")), log.get("status")
    if status != "success":
        why = str(object_of(log.get("error")).get("message") or "")
        yield f"The eval did not end: {status}{f' ({why})' if why else ''}."
    if log.get("invalidated") is True:
        yield "Somebody marked this log as invalid in Inspect."
    ids = list_of(object_of(about.get("dataset")).get("sample_ids"))
    planned = len(ids) * (as_count(object_of(about.get("config")).get("epochs")) or 1)
    if planned > samples:
        yield f"The log has {samples:,} of {planned:,} samples; the others did not run."


def _main_scorer(log: Mapping[str, Any]) -> str:
    """Return the name of the score that decides: Inspect's headline, else its first scorer; empty if unknown."""
    results = object_of(log.get("results"))
    named = object_of(results.get("headline")).get("scorer")
    scorers = [object_of(each) for each in list_of(results.get("scores"))]
    scorers += [object_of(each) for each in list_of(object_of(log.get("eval")).get("scorers"))]
    return str(named or next((each.get("scorer") or each.get("name") for each in scorers), "") or "")


def _trial(sample: dict[str, Any], main: str) -> ExternalTrial:
    transcript = without_deep_values(inspect_log.read_sample(sample))
    scores = object_of(sample.get("scores"))
    decides = main if main in scores else next(iter(scores), "")
    grade = _number(object_of(scores.get(decides)).get("value"))
    error = str(object_of(sample.get("error")).get("message") or "")
    if not error and grade is None:
        error = UNSCORED
    limit = object_of(sample.get("limit"))
    return ExternalTrial(
        key=key_of_text(sample.get("id")),
        outcome="error" if error else "pass" if grade is not None and grade >= 1 else "fail",
        prompt=_prompt(sample.get("input")),
        answer=transcript.answer,
        seconds=number_of(sample.get("total_time"), 1),
        finished=read_time(sample.get("completed_at")),
        scores=() if error else tuple(_scores(scores, decides)),
        error=error,
        transcript=transcript,
        completed=not (error or limit),
        timed_out=limit.get("type") in _TIME_LIMITS,
        usage=transcript.usage,
        cost_usd=_cost(sample),
        composite=None if error else grade,
        warnings=tuple(_notes(sample, limit)),
    )


def _notes(sample: Mapping[str, Any], limit: Mapping[str, Any]) -> Iterator[str]:
    if limit:
        yield f"Inspect ended this sample by its {limit.get('type')} limit of {limit.get('limit')}."
    if retries := len(list_of(sample.get("error_retries"))):
        yield f"Inspect started this sample again after {format_count(retries, 'error')}; what was used before is not in the log."


def _scores(scores: Mapping[str, Any], decides: str) -> Iterator[dict[str, Any]]:
    """Yield every score; only the one that decides passes or fails. Parts of a score are scores that inform."""
    for name, score in scores.items():
        value = object_of(score).get("value")
        number = _number(value)
        about = {
            "layer": "assertions",
            "message": str(object_of(score).get("explanation") or ""),
            "detail": {"value": value, "answer": object_of(score).get("answer")},
        }
        passed = number is not None and number >= 1 if name == decides else None
        yield {**about, "name": name[:LONGEST_NAME], "value": number, "passed": passed}
        for part, one in object_of(value).items():
            yield {
                **about,
                "name": f"{name}.{part}"[:LONGEST_NAME],
                "value": _number(one),
                "passed": None,
                "detail": {"value": one},
            }


def _number(value: Any) -> float | None:
    """Return a score as Inspect counts it for its metrics; of several parts the first. None for other texts."""
    if isinstance(value, dict):
        return next((number for part in value.values() if (number := _number(part)) is not None), None)
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        words = {**_LETTERS, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
        return words.get(value, words.get(value.lower(), _number_of_text(value)))
    return number_of(value, 1)


def _number_of_text(text: str) -> float | None:
    """Return the number that a text is; None for another text, and for no number."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _prompt(value: Any) -> str:
    """Return a sample's input; of several messages the user's."""
    if isinstance(value, str):
        return value
    said = [object_of(each) for each in list_of(value)]
    return "\n\n".join(str(each.get("content") or "") for each in said if each.get("role") == "user")


def _cost(sample: Mapping[str, Any]) -> float | None:
    """Return the cost of all models; None if Inspect doesn't state each."""
    costs = [object_of(each).get("total_cost") for each in object_of(sample.get("model_usage")).values()]
    known = [cost for cost in map(plausible_cost, costs) if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None
