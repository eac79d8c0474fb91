"""Draw samples of judgings for people to label, and record their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random, SystemRandom
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.models import Project
from evaluators.statistics.calibration import allocate
from runs.errors import RequestError, StaleReview
from runs.models import JudgingRecord, ReviewRound, RoundItem
from runs.review.calibrations import JudgeVersion, recalibrate
from runs.review.reviewing import check_person
from scenarios.models import Suite

MOST_ITEMS = 500


def judgings_of(project: Project, version: JudgeVersion, suite: Suite | None) -> QuerySet[JudgingRecord]:
    """Return the judgings of a judge version that have a verdict, and that no round has drawn."""
    judgings = JudgingRecord.objects.filter(
        trial__run__project=project, model=version.model, rubric=version.rubric, passed__isnull=False
    )
    judgings = judgings.filter(round_items=None)
    return judgings.filter(trial__run__suite=suite) if suite else judgings


def draw(
    project: Project,
    version: JudgeVersion,
    n: int,
    *,
    by: User,
    suite: str = "",
    is_stratified: bool = False,
    chance: Random | None = None,
) -> ReviewRound:
    """Draw n judgings at random and store them as a round; `suite` is a slug, empty for all.

    Raises `RequestError` for an unknown suite and if there are no judgings left.

    A stratified sample has as many that the judge passed as that it failed; weights correct for that.
    """
    check_person(by)
    if not 1 <= n <= MOST_ITEMS:
        raise RequestError(f"A sample of {n} is not possible. Choose 1 to {MOST_ITEMS} judgings.")
    only_suite = Suite.objects.filter(project=project, slug=suite).first() if suite else None
    if suite and only_suite is None:
        raise RequestError(f"There is no suite '{suite[:100]}'. Choose another, or none for all suites.")
    chance = chance or SystemRandom()
    rows = list(judgings_of(project, version, only_suite).order_by("pk").values_list("pk", "passed"))
    if not rows:
        raise RequestError("No unlabelled judgings of this judge are left. Run its suites again.")
    weights = _sample(rows, n, is_stratified, chance)
    order = list(weights)
    chance.shuffle(order)
    with transaction.atomic():
        review_round = ReviewRound.objects.create(
            project=project,
            suite=only_suite,
            model=version.model,
            rubric=version.rubric,
            is_stratified=is_stratified,
            by=by,
        )
        judgings = JudgingRecord.objects.select_related("trial__scenario_version").in_bulk(order)
        RoundItem.objects.bulk_create(
            RoundItem(
                round=review_round,
                judging_id=pk,
                position=position,
                weight=weights[pk],
                judge_passed=bool(judgings[pk].passed),
                judge_criteria=_criteria(judgings[pk]),
            )
            for position, pk in enumerate(order, 1)
        )
        audit.append_event(
            project, by, "review.round", f"round {review_round.pk}", judgings=len(order), model=version.model
        )
    return review_round


def _sample(
    rows: Sequence[tuple[int, bool | None]], n: int, is_stratified: bool, chance: Random
) -> dict[int, float]:
    """Return the weights of the drawn judgings by key: the inverse of the probability to be drawn."""
    if is_stratified:
        strata = [[pk for pk, passed in rows if passed], [pk for pk, passed in rows if not passed]]
        sampled = allocate(n, *map(len, strata))
        sizes = [sampled.passing, sampled.failing]
    else:
        strata, sizes = [[pk for pk, _ in rows]], [min(n, len(rows))]
    return {
        pk: len(stratum) / size
        for stratum, size in zip(strata, sizes, strict=True)
        if size
        for pk in chance.sample(stratum, size)
    }


def _criteria(judging: JudgingRecord) -> dict[str, bool]:
    judge = judging.trial.scenario_version.content.get("criteria", {}).get("judge") or {}
    threshold = judge.get("pass_threshold", 0.5)
    return {name: value >= threshold for name, value in (judging.content.get("criteria") or {}).items()}


def decide_item(
    item: RoundItem, *, passed: bool | None, criteria: Mapping[str, bool], note: str, by: User | None
) -> None:
    """Store a person's answer; None for unclear. Raises `StaleReview` if somebody has decided it already."""
    check_person(by)
    known = {name: value for name, value in criteria.items() if name in item.judge_criteria}
    with transaction.atomic():
        open_items = RoundItem.objects.filter(pk=item.pk, at=None)
        values: dict[str, Any] = {"passed": passed, "criteria": known, "note": note, "by": by}
        if not open_items.update(at=timezone.now(), **values):
            raise StaleReview(_describe_decision(RoundItem.objects.select_related("by").get(pk=item.pk)))
        project = item.round.project
        version = JudgeVersion(item.round.model, item.round.rubric)
        recalibrate(project, version)
        audit.append_event(project, by, "review.label", f"judging {item.judging_id}", round=item.round_id)


def _describe_decision(item: RoundItem) -> str:
    name = item.by.get_username() if item.by else "Somebody"
    return f"{name} decided item {item.position} of this round first; your answer was not saved."


def assign(item: RoundItem, person: User | None, *, seen: int | None) -> None:
    """Assign an undecided item. Raises `StaleReview` if its assignee is no longer the one that was seen."""
    changed = RoundItem.objects.filter(pk=item.pk, at=None, assignee=seen).update(assignee=person)
    if not changed:
        raise StaleReview(f"Somebody took or decided item {item.position} in the meantime; nothing changed.")


def rounds_of(project: Project) -> QuerySet[ReviewRound]:
    """Return a project's rounds with `total` and `done`, newest first."""
    done = Count("items", filter=Q(items__at__isnull=False))
    rounds = ReviewRound.objects.filter(project=project).select_related("suite", "by")
    return rounds.annotate(total=Count("items"), done=done)


def next_item(review_round: ReviewRound, person: User) -> RoundItem | None:
    """Return the person's next undecided item: their own first, then one that nobody took. One query."""
    waiting = review_round.items.filter(Q(assignee=person) | Q(assignee=None), at=None)
    return waiting.order_by(F("assignee").desc(nulls_last=True), "position").first()


def member_named(project: Project, name: str) -> User | None:
    """Return a member of the project, None for an empty name. Raises `RequestError` for anybody else."""
    if not name:
        return None
    person = User.objects.filter(memberships__project=project, username=name).first()
    if person is None:
        raise RequestError(f"{name[:100]} is not a member of this project.")
    return person
