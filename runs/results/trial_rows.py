"""Write trials: their own rows, and what belongs to them in other tables. Whoever stores trials does it here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from evaluators.model import Judging, Transcript
from runs.db import statements
from runs.models import (
    Artifact,
    CommandRecord,
    JudgingRecord,
    Run,
    SearchEntry,
    TranscriptRecord,
    Trial,
)
from runs.models.trial import transcript_row
from runs.results.search.trial_search import facets_by_outcome, make_entry

Row = Mapping[str, Any]
NewRows = tuple[type[Model], list[dict[str, Any]]]


@dataclass(frozen=True)
class TrialParts:
    """What is stored of a trial beside its own row; rows lack the trial's key, or have another one."""

    transcript: Transcript | None = None
    answer: str = ""
    error: str = ""
    commands: Sequence[Row] = ()
    """Of `CommandRecord`."""
    judgings: Sequence[Row] = ()
    """Of `JudgingRecord`."""
    judged: Sequence[Judging] = ()
    """What the search finds of judges."""
    artifacts: Sequence[Row] = ()


def rows_of_parts(trials: Iterable[tuple[int, str, TrialParts]]) -> list[NewRows]:
    """Return the rows to insert for trials, each given by its key, the facets of its search entry and its parts."""
    rows: dict[type[Model], list[dict[str, Any]]] = {
        TranscriptRecord: [],
        CommandRecord: [],
        JudgingRecord: [],
        Artifact: [],
        SearchEntry: [],
    }
    for trial, facets, parts in trials:
        if parts.transcript is not None:
            rows[TranscriptRecord].append(transcript_row(trial, parts.transcript))
        for model, model_rows in (
            (CommandRecord, parts.commands),
            (JudgingRecord, parts.judgings),
            (Artifact, parts.artifacts),
        ):
            rows[model] += [{**row, "trial": trial} for row in model_rows]
        search_entry = make_entry(
            trial,
            facets,
            transcript=parts.transcript,
            judgings=parts.judged,
            answer=parts.answer,
            error=parts.error,
        )
        rows[SearchEntry].append(search_entry)
    return list(rows.items())


def insert_parts(rows: Iterable[NewRows]) -> None:
    """Insert rows of `rows_of_parts`. Requires a transaction."""
    for model, model_rows in rows:
        statements.insert(model, model_rows)


def insert_trials(run: Run, trials: Sequence[tuple[Row, TrialParts]]) -> list[int]:
    """Insert a run's trials with their parts, and return their keys. Requires a transaction.

    Each row has the columns that differ from a new trial's; they are in the order of their positions.
    """
    blank = {**statements.blank(Trial), "run": run.pk}
    statements.insert(Trial, [{**blank, **row} for row, _ in trials])
    keys = list(run.trial_set.order_by("position").values_list("pk", flat=True))
    facets = facets_by_outcome(run.pk, {str(row.get("outcome", "")) for row, _ in trials})
    insert_parts(
        rows_of_parts(
            (key, facets[str(row.get("outcome", ""))], parts)
            for key, (row, parts) in zip(keys, trials, strict=True)
        )
    )
    return keys
