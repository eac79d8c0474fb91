"""Write the texts of trials that the search finds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from evalhub.lib.storable_text import storable
from evaluators.model import Event, Judging, Transcript
from evaluators.redaction import redact_patterns
from runs.db import statements
from runs.models import JudgingRecord, SearchEntry, TranscriptRecord, Trial
from runs.models.trial import TrialState

LONGEST_TEXT = 20_000
"""Characters of each column of an entry."""
LONGEST_LINE = 300
MOST_TEXT_LINES = 200
"""Lines of a transcript without events."""
BATCH = 200
"""Trials indexed in one transaction."""
RUN_FIELDS = ("project_id", "suite_id", "target_id", "guidance_id", "by_id", "model", "tool_version")


def facet(kind: str, value: object) -> str:
    """Return the word for a filter: a key as it is, a text by its hash; letters and digits only."""
    text = str(value)
    key = text if text.isdigit() else hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"x{kind}{key}"


FACETS = {
    "project_id": "p",
    "suite_id": "s",
    "target_id": "t",
    "guidance_id": "g",
    "by_id": "a",
    "model": "m",
    "tool_version": "v",
    "outcome": "o",
}
"""Letters of the filters, by field of the run or trial."""


def facets_of(run_id: int, outcome: str) -> str:
    """Return the facets of a run's trials with an outcome. One query."""
    values = {**statements.run_values(run_id, RUN_FIELDS), "outcome": outcome}
    return " ".join(facet(FACETS[name], value) for name, value in values.items() if value)


def facets_by_outcome(run_id: int, outcomes: Iterable[str]) -> dict[str, str]:
    """Return the facets of a run's trials by outcome. One query."""
    of_run = facets_of(run_id, "")
    return {
        outcome: f"{of_run} {facet(FACETS['outcome'], outcome)}" if outcome else of_run
        for outcome in outcomes
    }


def entry(
    trial_id: int,
    facets: str,
    *,
    transcript: Transcript | None,
    judgings: Iterable[Judging],
    answer: str,
    error: str = "",
) -> dict[str, Any]:
    """Return the row of a trial's `SearchEntry`."""
    events = transcript.events if transcript else ()
    outputs = [*map(_output, events), error]
    if transcript and not events:
        outputs += transcript.text.splitlines()[:MOST_TEXT_LINES]
    return {
        "trial": trial_id,
        "facets": facets,
        "commands": _text(map(_command, events)),
        "outputs": _text(outputs),
        "judge": _text(line for judging in judgings for line in _statements(judging)),
        "answer": _text(answer.splitlines()),
    }


def _command(event: Event) -> str:
    if event.type != "tool_call":
        return ""
    if event.command:
        return event.command
    arguments = msgspec.json.encode(event.input).decode() if event.input not in (None, {}) else ""
    return f"{event.name or ''} {arguments}"


def _output(event: Event) -> str:
    """Return the first line that a call printed."""
    if event.type != "tool_result" or event.output is None:
        return ""
    output = event.output if isinstance(event.output, str) else msgspec.json.encode(event.output).decode()
    return next((line for line in output[:LONGEST_TEXT].splitlines() if line.strip()), "")


def _statements(judging: Judging) -> Iterator[str]:
    yield from (judging.reasoning, *judging.negatives, *judging.positives, *judging.reasons.values())


def _text(lines: Iterable[str]) -> str:
    """Return lines as a column's text: each once, cut, without secrets."""
    short = dict.fromkeys(" ".join(line[: 4 * LONGEST_LINE].split())[:LONGEST_LINE] for line in lines)
    text = "\n".join(filter(None, short))[:LONGEST_TEXT]
    return redact_patterns(storable(text)) if text else ""


def index_trials(trial_ids: Sequence[int]) -> None:
    """Write the entries of stored trials anew, from their rows; call it in a transaction."""
    SearchEntry.objects.filter(pk__in=trial_ids).delete()
    trials = list(Trial.objects.filter(pk__in=trial_ids, state=TrialState.FINISHED).defer("scores", "detail"))
    transcripts = {each.pk: each.unpack() for each in TranscriptRecord.objects.filter(pk__in=trial_ids)}
    judgings: dict[int, list[Judging]] = {}
    for judging in JudgingRecord.objects.filter(trial__in=trial_ids):
        judgings.setdefault(judging.trial_id, []).append(
            msgspec.convert(
                {"score": judging.score, "passed": judging.passed, **judging.content}, Judging, strict=False
            )
        )
    facets = {key: facets_of(*key) for key in {(trial.run_id, trial.outcome) for trial in trials}}
    rows = [
        entry(
            trial.pk,
            facets[trial.run_id, trial.outcome],
            transcript=transcripts.get(trial.pk),
            judgings=judgings.get(trial.pk, ()),
            answer=trial.answer,
            error=trial.error,
        )
        for trial in trials
    ]
    statements.insert(SearchEntry, rows)
