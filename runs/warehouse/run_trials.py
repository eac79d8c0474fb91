"""The trials of a run and of its baseline, read and decoded once for everything that its page says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db.models import Case, Q, QuerySet, TextField, When
from django.db.models.functions import Cast
from django.utils.functional import cached_property
from msgspec import Struct

from evalhub.web.prepared import prepared
from runs.models import Run, Trial
from runs.models.trial import TrialState
from runs.reasons import failed_scores, is_verdict
from runs.warehouse.rates import Rate

COLUMNS = (
    *("pk", "scenario__key", "scenario_id", "index", "state", "outcome", "error", "seconds", "cost_usd"),
)
MOST_LOST = 3


class ReadScore(Struct, gc=False):
    """What is read of a score; the rest of its JSON is skipped."""

    layer: str
    name: str
    value: float | None = None
    passed: bool | None = None


class ReadDetail(Struct, gc=False):
    """What is read of a trial's detail."""

    diagnosis: list[dict[str, Any]] | None = None


_detail = msgspec.json.Decoder(ReadDetail)
_scores = msgspec.json.Decoder(list[ReadScore])


@dataclass(frozen=True)
class TrialRow:
    """A trial as its run's page has it."""

    pk: int
    key: str
    """Of its scenario."""
    scenario: int
    index: int
    stands: str
    outcome: str
    error: str
    seconds: float | None
    cost_usd: float | None
    scores_text: str
    detail_text: str

    @property
    def is_finished(self) -> bool:
        return self.stands == TrialState.FINISHED

    @property
    def mark(self) -> str:
        """Its dot."""
        if self.is_finished:
            return self.outcome
        return "running" if self.stands == TrialState.RUNNING else "none"

    @property
    def state(self) -> str:
        return self.outcome or self.stands

    @property
    def number(self) -> int:
        return self.index + 1

    @cached_property
    def scores(self) -> list[ReadScore]:
        return _scores.decode(self.scores_text)

    @cached_property
    def gates(self) -> Rate:
        verdicts = [
            score.passed
            for score in self.scores
            if score.passed is not None and score.layer != "judge" and not is_verdict(score.layer, score.name)
        ]
        return Rate(sum(verdicts), len(verdicts))

    @cached_property
    def judge(self) -> float | None:
        """The judge's score, None where it was not asked."""
        found = (score.value for score in self.scores if score.layer == score.name == "judge")
        return next(found, None)

    @cached_property
    def lost(self) -> list[str]:
        """What failed, in the words of the layers."""
        if self.error:
            return [self.error]
        failed = failed_scores(msgspec.json.decode(self.scores_text))
        return [score.get("message") or f"{score['name']} failed." for score in failed[:MOST_LOST]]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What the diagnosis found; nothing before the trial's end."""
        return _detail.decode(self.detail_text).diagnosis or [] if self.is_finished else []


@dataclass(frozen=True)
class RunTrials:
    """A run's trials in their order, and the outcomes of its baseline's that ended, by scenario."""

    trials: list[TrialRow]
    before: dict[str, list[str]] = field(default_factory=dict)

    @property
    def finished(self) -> list[TrialRow]:
        return [trial for trial in self.trials if trial.is_finished]

    @property
    def outcomes(self) -> dict[str, list[str]]:
        """The outcomes of the run's trials that ended, by scenario."""
        found: dict[str, list[str]] = {}
        for trial in self.finished:
            found.setdefault(trial.key, []).append(trial.outcome)
        return found


def trials_of(run: Run) -> RunTrials:
    """Return the trials of a run and what its baseline's came to. One query.

    Texts of JSON columns are decoded here: Django's own decoding takes ten times as long.
    """
    trials, before = [], dict[str, list[str]]()
    for owner, *values in _rows(run.pk, run.baseline_id) if run.baseline_id else _rows(run.pk):
        row = TrialRow(*values)
        if owner == run.pk:
            trials.append(row)
        else:
            before.setdefault(row.key, []).append(row.outcome)
    return RunTrials(trials, before)


@prepared
def _rows(run: int, baseline: int | None = None) -> QuerySet[Trial, Any]:
    own, ended = Q(run=run), Q(run=baseline, state=TrialState.FINISHED)
    found = Trial.objects.filter(own | ended if baseline else own).order_by("position", "pk")
    scores = Case(When(run=run, then=Cast("scores", TextField())))
    diagnosis = Case(When(run=run, then=Cast("detail", TextField())))
    return found.values_list("run_id", *COLUMNS, scores, diagnosis)
