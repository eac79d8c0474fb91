"""What people say of diagnosed patterns, and how often each pattern was right."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from evalhub.teams import audit
from evaluators.statistics.descriptive import Interval, wilson_interval
from runs.errors import RequestError
from runs.models import DiagnosisReview, Run
from runs.results.digests import trials_of
from runs.review.reviewing import check_person


class Precision(NamedTuple):
    """How often people found a pattern right, over a project's runs."""

    right: int
    n: int
    own: bool | None
    """What was said of the pattern in one run; None without a review."""

    @property
    def interval(self) -> Interval:
        """The 95 % interval (Wilson)."""
        return wilson_interval(self.right, self.n)


NO_REVIEW = Precision(0, 0, None)


def precisions(run: Run) -> dict[str, Precision]:
    """Return the reviewed patterns of the run's project. One query."""
    rows = DiagnosisReview.objects.filter(run__project=run.project_id).values("pattern").order_by()
    is_right = Q(is_right=True)
    of_run = Count("pk", filter=Q(run=run)), Count("pk", filter=Q(run=run) & is_right)
    counted = rows.annotate(
        n=Count("pk"), right=Count("pk", filter=is_right), own=of_run[0], own_right=of_run[1]
    )
    return {
        row["pattern"]: Precision(row["right"], row["n"], bool(row["own_right"]) if row["own"] else None)
        for row in counted
    }


@transaction.atomic
def review_finding(run: Run, pattern: str, *, is_right: bool | None, by: User | None) -> None:
    """Store whether a run's finding is right; None removes the review. Raises `RequestError` for an unknown finding."""
    check_person(by)
    if run.is_open:
        raise RequestError(f"Run {run.pk} is in progress. Review its diagnosis after it has finished.")
    if pattern not in {each.pattern for each in trials_of(run).digest.diagnosis}:
        raise RequestError(f"Run {run.pk} has no finding '{pattern}'. Its page lists its findings.")
    if is_right is None:
        DiagnosisReview.objects.filter(run=run, pattern=pattern).delete()
    else:
        defaults = {"is_right": is_right, "by": by, "at": timezone.now()}
        DiagnosisReview.objects.update_or_create(run=run, pattern=pattern, defaults=defaults)
    audit.append_event(run.project, by, "diagnosis.review", f"run {run.pk}", pattern=pattern, right=is_right)
