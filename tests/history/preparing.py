"""Prepare the generated runs' rows, up to the keys that only the database knows. No query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from django.db.models import Model

from evaluators.model import Judging
from runs.db import statements
from runs.engine.recording import columns_of_result, judging_row, total_cost
from runs.models import Artifact, CommandRecord, JudgingRecord, SearchEntry, TranscriptRecord, Trial
from runs.models.run import RunState
from runs.models.run_options import RunOptions
from runs.results.search.trial_search import make_entry
from tests.history.catalogue import SCENARIOS, TAGS, TARGETS
from tests.history.sessions import DemoSession
from tests.history.story import Chapter, difficulties
from tests.history.trials import DemoTrial, demo_trial

_KEYS = frozenset(("run", "scenario_version", "scenario", "trial", "facets"))
"""Columns with keys of other rows; `PreparedRows` lack them."""


@dataclass(frozen=True)
class PreparedRows:
    """Rows of one table as the database stores them, without keys of other rows."""

    model: type[Model]
    names: tuple[str, ...]
    """Columns of the values."""
    places: tuple[int, ...]
    """Each row's trial, by its position in the run."""
    values: list[list[Any]]


@dataclass(frozen=True)
class PreparedRun:
    """A run's rows; equal for equal chapters, numbers of trials and seeds."""

    chapter: Chapter
    columns: dict[str, Any]
    """The run's own, without keys of other rows."""
    outcomes: tuple[str, ...]
    """By the trial's position."""
    trials: PreparedRows
    parts: tuple[PreparedRows, ...]
    """Rows that belong to a trial."""
    entries: PreparedRows
    """What the search finds."""


def prepare(chapter: Chapter, *, trials: int, seed: int) -> PreparedRun:
    """Return the rows of a chapter's run."""
    rng = Random(f"{seed} {chapter.number}")
    hard = difficulties(chapter.tool, seed=seed)
    demo_trials = [demo_trial(chapter, at % SCENARIOS, hard[at % SCENARIOS], rng) for at in range(trials)]
    columns = _columns(chapter, demo_trials, rng)
    return PreparedRun(
        chapter=chapter,
        columns=columns,
        outcomes=tuple(each.result.outcome for each in demo_trials),
        trials=_rows(Trial, enumerate(_trial(columns, at, each) for at, each in enumerate(demo_trials))),
        parts=tuple(_parts(demo_trials, created=columns["finished"])),
        entries=_rows(SearchEntry, enumerate(map(_entry, demo_trials))),
    )


def _columns(chapter: Chapter, trials: Sequence[DemoTrial], rng: Random) -> dict[str, Any]:
    started = chapter.created + timedelta(seconds=2)
    return {
        "model": TARGETS[chapter.target][1],
        "tool_version": chapter.tool_version,
        "options": RunOptions(trials=max(1, len(trials) // SCENARIOS)).model_dump(mode="json"),
        "branch": "" if rng.random() < 0.8 else "feature/clearer-flags",
        "commit": f"{rng.getrandbits(160):040x}",
        "tags": rng.sample(TAGS, rng.randint(0, 2)),
        "created": chapter.created,
        "started": started,
        "finished": started
        + timedelta(seconds=sum(each.result.execution.seconds or 0.0 for each in trials) / 8),
        **_totals(trials),
    }


def _totals(trials: Sequence[DemoTrial]) -> dict[str, Any]:
    """Return a closed run's totals."""
    outcomes = [each.result.outcome for each in trials]
    usages = [used for each in trials if (used := each.result.execution.usage)]
    return {
        "state": RunState.FINISHED,
        "outcome": "fail" if "fail" in outcomes else "error" if "error" in outcomes else "pass",
        "trials": len(trials),
        "passed": outcomes.count("pass"),
        "failed": outcomes.count("fail"),
        "errors": outcomes.count("error"),
        "cost_usd": sum(total_cost(each.result) or 0.0 for each in trials),
        "tokens_in": sum(usage.input for usage in usages),
        "tokens_out": sum(usage.output for usage in usages),
    }


def _rows(model: type[Model], rows: Iterable[tuple[int, Mapping[str, Any]]]) -> PreparedRows:
    """Return rows, each with its trial's position, as the database stores them."""
    placed = [(at, {name: value for name, value in row.items() if name not in _KEYS}) for at, row in rows]
    values = [row for _, row in placed]
    names = tuple(values[0]) if values else ()
    return PreparedRows(model, names, tuple(at for at, _ in placed), statements.storable_rows(model, values))


def _trial(run: Mapping[str, Any], at: int, trial: DemoTrial) -> dict[str, Any]:
    """Return the trial's row as execution would store it."""
    times = {"started": run["started"], "finished": run["finished"]}
    place = {"index": at // SCENARIOS, "position": at, "starts": 1}
    return {**statements.blank(Trial), **columns_of_result(trial.result), **place, **times}


def _parts(trials: Sequence[DemoTrial], *, created: datetime) -> Iterator[PreparedRows]:
    played = [(at, trial.session) for at, trial in enumerate(trials) if trial.session]
    yield _rows(TranscriptRecord, ((at, _transcript(session)) for at, session in played))
    yield _rows(CommandRecord, ((at, row) for at, session in played for row in session.commands))
    judged = (
        (at, judging_row(0, score) | {"created": created})
        for at, trial in enumerate(trials)
        for score in (trial.result.evaluation.scores if trial.result.evaluation else ())
        if score.judging
    )
    yield _rows(JudgingRecord, judged)
    artifacts = (
        (at, vars(artifact)) for at, trial in enumerate(trials) for artifact in trial.result.artifacts
    )
    yield _rows(Artifact, artifacts)


def _transcript(session: DemoSession) -> dict[str, Any]:
    return {"source": "events", "data": session.packed, "events": session.events}


def _entry(trial: DemoTrial) -> dict[str, Any]:
    if trial.session is None:
        return make_entry(0, "", transcript=None, judgings=(), answer="", error=trial.result.error)
    judging = trial.judging
    judge = _judge_text(judging.reasoning, judging.negatives, judging.positives) if judging else ""
    return trial.session.texts | {"judge": judge}


@cache
def _judge_text(reasoning: str, negatives: tuple[str, ...], positives: tuple[str, ...]) -> str:
    judging = Judging(reasoning=reasoning, negatives=negatives, positives=positives)
    text: str = make_entry(0, "", transcript=None, judgings=[judging], answer="")["judge"]
    return text
