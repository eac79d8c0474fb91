"""Show a reassessment's scores beside the stored ones, and make them count.

Also has what the commands `judge_again` and `grade_again` share.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.lib.numbers import format_count, format_money
from evalhub.teams import audit
from runs.compare.comparison import lock_closed_run, recompute, store_scores
from runs.db.transactions import write_transaction
from runs.engine.stored_trials.reassessing import reassess, request_reassessment
from runs.engine.stored_trials.reassessment_plan import estimate_reassessment, ready_rubric
from runs.errors import RequestError, StaleReview
from runs.models import Job, JudgingRecord, ReassessedTrial, Reassessment, Run
from runs.results.comparability import record_adopted
from runs.review.overruling import keep_overruled
from runs.workers.job_runner import run_job
from scenarios.commands import FAILED, EvalhubCommand, Refused, Result, acting_user

MOST_SHOWN = 5
"""Reassessments of a run on its page."""


@dataclass(frozen=True)
class TrialPair:
    """One trial's stored and new result."""

    trial: int
    key: str
    before: str
    after: str
    score_before: float | None
    score_after: float | None
    note: str

    @property
    def changed(self) -> bool:
        return bool(self.after) and self.before != self.after


@dataclass(frozen=True)
class ReassessmentResult:
    """A reassessment with its trials."""

    made: Reassessment
    is_taken: bool = False
    """Whether a worker is at it."""
    pairs: list[TrialPair] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Return how many outcomes differ from the current ones."""
        return sum(pair.changed for pair in self.pairs)

    @property
    def can_adopt(self) -> bool:
        finished = self.made.finished is not None and self.made.adopted is None
        return finished and any(pair.after for pair in self.pairs)


def read_newest_reassessments(run: Run) -> list[ReassessmentResult]:
    """Return a run's newest reassessments, newest first, with the trials that changed first. Three queries."""
    reassessments = list(run.reassessments.select_related("by", "adopted_by")[:MOST_SHOWN])
    rows = ReassessedTrial.objects.filter(reassessment__in=reassessments).select_related("trial__scenario")
    pairs: dict[int, list[TrialPair]] = {each.pk: [] for each in reassessments}
    for row in rows.defer("trial__detail", "trial__answer"):
        trial = row.trial
        pairs[row.reassessment_id].append(
            TrialPair(
                trial.pk,
                trial.scenario.key,
                trial.outcome,
                row.outcome,
                _judge(trial.scores),
                _judge(row.scores),
                row.note,
            )
        )
    jobs = Job.objects.filter(kind=Job.Kind.REASSESSMENT, subject__in=pairs).exclude(token="")
    taken = set(jobs.values_list("subject", flat=True))
    return [
        ReassessmentResult(
            reassessment,
            reassessment.pk in taken,
            sorted(pairs[reassessment.pk], key=lambda pair: (not pair.changed, pair.trial)),
        )
        for reassessment in reassessments
    ]


def _judge(scores: Iterable[dict[str, Any]]) -> float | None:
    return next((each.get("value") for each in scores if each["layer"] == each["name"] == "judge"), None)


class ReassessCommand(EvalhubCommand):
    """Assess a run's stored trials again in this process."""

    kind = ""

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="RUN", help="number of the run")
        parser.add_argument("--plan", action="store_true", help="print calls and estimated cost, and stop")
        parser.add_argument("--adopt", action="store_true", help="make the new scores count")

    def work(self, options: dict[str, Any]) -> Result:
        run = Run.objects.select_related("project", "suite_version").filter(pk=options["run"]).first()
        if run is None:
            raise Refused(f"There is no run {options['run']}.", id="run/unknown")
        try:
            return self._assess(run, options)
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error

    def _assess(self, run: Run, options: dict[str, Any]) -> Result:
        rubric = options.get("rubric") or ""
        plan = estimate_reassessment(run, self.kind, ready_rubric(rubric))
        cost = "unknown" if plan.cost_usd is None else format_money(plan.cost_usd)
        text = f"{format_count(plan.trials, 'trial')}, {format_count(plan.calls, 'judge call')}, estimated cost {cost}."
        blind = [
            f"{ungraded.scenario}, {format_count(ungraded.trials, 'trial')} not graded: {ungraded.reason} Needed by {', '.join(ungraded.checks)}."
            for ungraded in plan.not_graded
        ]
        if options["plan"]:
            return Result("\n".join([text, *blind]), {"plan": asdict(plan)})
        reassessment = request_reassessment(
            run,
            self.kind,
            by=acting_user(),
            judge_model=options.get("judge_model") or "",
            rubric=rubric,
            max_usd=options.get("max_usd"),
            wakes=False,
        )
        run_job(Job.objects.get(kind=Job.Kind.REASSESSMENT, subject=reassessment.pk).pk, reassess)
        result = next(each for each in read_newest_reassessments(run) if each.made.pk == reassessment.pk)
        lines = [text, f"{result.changed} of {format_count(len(result.pairs), 'outcome')} differ."]
        lines += [
            f"{pair.key} {pair.trial}: {pair.before} → {pair.after or 'unchanged'}{f'  {pair.note}' if pair.note else ''}"
            for pair in result.pairs
            if pair.changed or pair.note
        ]
        if result.made.error:
            lines.append(result.made.error)
        elif options["adopt"]:
            lines.append(
                f"Adopted the scores of {format_count(adopt(result.made, by=acting_user()), 'trial')}."
            )
        else:
            lines.append("Nothing counts yet. Adopt the scores on the run's page or with --adopt.")
        document = {
            "reassessment": reassessment.pk,
            "plan": asdict(plan),
            "cost_usd": result.made.cost_usd,
            "error": result.made.error,
            "trials": [vars(pair) for pair in result.pairs],
        }
        return Result("\n".join(lines), document, FAILED if result.made.error else 0)


def adopt(reassessment: Reassessment, *, by: User | None) -> int:
    """Replace the run's scores by those of a reassessment and recompute the run; return the number of trials.

    Overruled scores stay overruled. Raises `RequestError` if it is unfinished or has no scores, and `StaleReview` if
    it was adopted already.
    """
    with write_transaction():
        run = lock_closed_run(reassessment.run_id)
        reassessment = Reassessment.objects.get(pk=reassessment.pk)
        if reassessment.finished is None:
            raise RequestError(f"This {reassessment} has not finished. Adopt it when it has.")
        if reassessment.adopted is not None:
            raise StaleReview(f"This {reassessment} was adopted already. Nothing changed.")
        rows = list(
            reassessment.trials.exclude(outcome="").select_related("trial__scenario_version", "graded_by")
        )
        if not rows:
            raise RequestError(f"This {reassessment} has no scores to adopt.")
        for row in rows:
            _replace(reassessment, row)
        reassessment.adopted, reassessment.adopted_by = timezone.now(), by
        reassessment.save(update_fields=["adopted", "adopted_by"])
        record_adopted(run, reassessment, rows)
        recompute(run, [row.trial_id for row in rows])
        judges = reassessment.kind == Reassessment.Kind.JUDGE
        audit.append_event(
            run.project,
            by,
            "run.judge-adopt" if judges else "run.grade-adopt",
            f"run {run.pk}",
            trials=len(rows),
        )
    return len(rows)


def _replace(reassessment: Reassessment, row: ReassessedTrial) -> None:
    trial = row.trial
    store_scores(trial, keep_overruled(trial, _with_current(reassessment, trial.scores, row.scores)))
    if reassessment.kind == Reassessment.Kind.JUDGE:
        JudgingRecord.objects.filter(trial=trial, counts=True).update(counts=False)
        JudgingRecord.objects.filter(pk__in=row.judgings.values("pk")).update(counts=True)


def _with_current(
    reassessment: Reassessment, now: list[dict[str, Any]], new: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the trial's current scores with those of the assessed layers replaced.

    Another reassessment may have been adopted since this one was made.
    """
    judge = reassessment.kind == Reassessment.Kind.JUDGE
    layers = {"judge", "evaluators"} if judge else {"gates", "assertions", "scripts"}
    others = [row for row in now if row["layer"] not in layers]
    return [*others, *(row for row in new if row["layer"] in layers)]
