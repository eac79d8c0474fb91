"""What judging or grading a run's stored trials again takes, and what it can't reach."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Exists, OuterRef, QuerySet

from evaluators.grading.evaluate import Criteria
from evaluators.grading.gates import Gate
from evaluators.grading.judges.rubric import PREFIX, READY, RubricCriteria
from runs.compare.comparison import LAYERS as SCORED
from runs.errors import RequestError
from runs.models import Artifact, JudgingRecord, Reassessment, Run, Trial
from runs.models.trial import TrialState

KEPT_WORKSPACE = "workspace"


@dataclass(frozen=True)
class NotGraded:
    """The checks of a scenario that need a workspace, and its trials without a usable one."""

    scenario: str
    checks: tuple[str, ...]
    trials: int
    reason: str


@dataclass(frozen=True)
class ReassessmentPlan:
    """What assessing a run again takes."""

    trials: int
    calls: int
    """Most calls of a judge, without corrections."""
    cost_usd: float | None
    """By the mean cost of the run's own judgings; None if unknown."""
    not_graded: tuple[NotGraded, ...] = ()
    """Trials that can't be graded again; they keep their stored scores."""


def ready_rubric(name: str) -> RubricCriteria | None:
    """Return a shipped rubric; None for an empty name. Raises `RequestError` for an unknown one."""
    if not name:
        return None
    rubric = READY.get(name.removeprefix(PREFIX))
    if rubric is None:
        raise RequestError(f"Unknown rubric '{name}'. Choose {', '.join(READY)}, or leave it out.")
    return rubric


def find_assessable(run: Run) -> QuerySet[Trial]:
    """Return the run's trials whose stored evidence can be assessed again, in order."""
    kinds = ("", *SCORED)
    trials = Trial.objects.filter(run=run, state=TrialState.FINISHED, error_kind__in=kinds)
    return trials.filter(transcript__isnull=False).order_by("position", "pk")


def estimate_reassessment(run: Run, kind: str, rubric: RubricCriteria | None = None) -> ReassessmentPlan:
    """Return the number of trials and calls, and the estimated cost. Three queries."""
    trials = find_assessable(run)
    if kind == Reassessment.Kind.GRADE:
        return ReassessmentPlan(trials.count(), 0, 0.0, _not_graded(run, trials))
    contents = dict(run.suite_version.scenario_versions.values_list("pk", "content__criteria"))
    keys = list(trials.values_list("scenario_version", flat=True))
    calls = sum(_calls(Criteria.model_validate(contents[key]), rubric) for key in keys if key in contents)
    mean = JudgingRecord.objects.filter(trial__run=run).aggregate(mean=Avg("cost_usd"))["mean"]
    return ReassessmentPlan(len(keys), calls, None if mean is None else mean * calls)


def _not_graded(run: Run, trials: QuerySet[Trial]) -> tuple[NotGraded, ...]:
    """Return what can't be graded again and why, by scenario and reason. Three queries."""
    newest = run.suite.versions.first()
    versions = list(newest.scenario_versions.all()) if newest else []
    specs = {each.scenario_id: each.spec for each in versions}
    has_workspace = Exists(Artifact.objects.filter(trial=OuterRef("pk"), name=KEPT_WORKSPACE))
    counts: Counter[tuple[int, str, str]] = Counter()
    rows = trials.annotate(kept=has_workspace).values_list(
        "scenario", "scenario__key", "detail__workspace", "kept"
    )
    for scenario, key, changes, is_kept in rows:
        if (reason := without_workspace(changes, is_kept)) and scenario in specs:
            counts[scenario, key, reason] += 1
    every = (
        NotGraded(key, need_workspace(specs[scenario].criteria), n, reason)
        for (scenario, key, reason), n in counts.items()
    )
    return tuple(each for each in every if each.checks)


def without_workspace(changes: dict[str, Any] | None, is_kept: bool) -> str:
    """Return why a trial's workspace can't be used, from its detail; empty if it can."""
    left_out = (changes or {}).get("left_out") or []
    if left_out:
        return f"The stored workspace lacks large files, such as {left_out[0]}."
    if is_kept or (changes or {}).get("empty"):
        return ""
    return "The workspace is not stored."


def need_workspace(criteria: Criteria) -> tuple[str, ...]:
    """Return the names of the gates and informing scripts that need a workspace."""
    gates = [_name_gate(gate) for gate in criteria.gates if gate.needs_workspace]
    return (*gates, *(f"script {each.name}" for each in criteria.scripts))


def _name_gate(gate: Gate) -> str:
    about = gate.name or getattr(gate, "path", "") or getattr(gate, "command", "")
    return f"{gate.type} {about}".strip()


def _calls(criteria: Criteria, rubric: RubricCriteria | None) -> int:
    judge = criteria.judge
    asks = sum(evaluator.asks_model for evaluator in criteria.evaluators)
    if judge is not None and judge.enabled:
        return asks + max(1, judge.judgings)
    return asks + (rubric is not None)
