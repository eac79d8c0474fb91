"""List what needs attention: one row per decision or problem, most urgent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, F, OuterRef, Q, Subquery

from evalhub.lib.numbers import counted
from evalhub.teams.models import Project
from runs.models import Alert, Target, TargetCheck
from runs.models.comparison import OPEN_ALERTS, AlertState
from runs.models.run import RunState
from runs.results.run_list import RunRow

MOST_ALERTS = 100
"""Most alerts read; at this number there may be more."""
SHOWN_ALERTS = 3
MOST_LINES = 8
MOST_ALIKE = 3
"""Rows of one kind that are shown one by one."""
GROUPS = {
    "error": ("runs ended in errors", "run-list", "?state=error"),
    "failed": ("suites failed", "run-list", "?state=fail"),
    "cannot start": ("targets cannot start", "target-list", ""),
    "stale": ("suites stale", "suite-list", ""),
}
"""Kinds of rows that can share a line: plural and the page that lists them."""
IDLE = timedelta(days=14)
"""A suite is stale if its last run on a target is older."""


class OpenAlert(NamedTuple):
    """An open regression."""

    pk: int
    state: str
    created: datetime
    assignee: str | None
    run: int
    suite: str
    target: str
    lost: int
    """Scenarios that no longer pass."""


@dataclass(frozen=True)
class Attention:
    """A row: its kind, text and link."""

    state: str
    """The badge's text."""
    title: str
    detail: str
    since: datetime | None
    page: str
    """Name of the linked page."""
    key: int | None = None
    """The page's key, None if it needs none."""
    part: str = ""
    """Query string and fragment."""


def open_alerts(project: Project) -> list[OpenAlert]:
    """Return a project's open alerts, newest first, at most `MOST_ALERTS`. One query."""
    columns = ("pk", "state", "created", "assignee__username")
    of_the_run = ("run_id", "run__suite__name", "run__target__name")
    is_lost = Q(run__changes__after__lt=F("run__changes__before"), run__changes__scenario__isnull=False)
    newest = Alert.objects.filter(project=project, state__in=OPEN_ALERTS).order_by("-pk").values("pk")
    # Select the newest hundred first, to avoid joining all.
    found = Alert.objects.filter(pk__in=newest[:MOST_ALERTS]).order_by("-pk")
    rows = found.values_list(*columns, *of_the_run).annotate(lost=Count("run__changes", filter=is_lost))
    return [OpenAlert(*row) for row in rows]


class OpenCounts(NamedTuple):
    """How many alerts of a project are open, and how many of them nobody has triaged."""

    open: int
    untriaged: int


def open_counts(project: Project, newest: Sequence[OpenAlert]) -> OpenCounts:
    """Return the counts. Without a query if `newest` are all: fewer than `MOST_ALERTS`."""
    if len(newest) < MOST_ALERTS:
        return OpenCounts(len(newest), sum(each.state == AlertState.UNTRIAGED for each in newest))
    counts = Alert.objects.filter(project=project, state__in=OPEN_ALERTS).aggregate(
        open=Count("pk"), untriaged=Count("pk", filter=Q(state=AlertState.UNTRIAGED))
    )
    return OpenCounts(**counts)


def attention(
    project: Project, alerts: Sequence[OpenAlert], latest: Sequence[RunRow], *, now: datetime
) -> list[Attention]:
    """Return the attention list: untriaged alerts, failed runs, broken targets, stale suites.

    `latest` is the newest run of every suite on every target. One query.
    """
    listed = [each for each in alerts if each.state == AlertState.UNTRIAGED]
    return group_rows(
        [
            *_alerts(listed),
            *_runs(latest, {each.run for each in listed}),
            *_targets(project),
            *_stale(latest, now),
        ]
    )


def group_rows(rows: Sequence[Attention]) -> list[Attention]:
    """Return at most `MOST_LINES` rows: of the kinds with the most rows, one line each."""
    counts = Counter(row.state for row in rows if row.state in GROUPS)
    left, whole = len(rows), {}
    for state, n in counts.most_common():
        if n > MOST_ALIKE or (left > MOST_LINES and n > 1):
            whole[state] = [row for row in rows if row.state == state]
            left -= n - 1
    found: list[Attention] = []
    for row in rows:
        if row.state not in whole:
            found.append(row)
        elif row is whole[row.state][0]:
            found.append(_group(whole[row.state]))
    return found


def _group(rows: Sequence[Attention]) -> Attention:
    state = rows[0].state
    many, page, part = GROUPS[state]
    names = ", ".join(row.title.partition(":")[0] for row in rows[:MOST_ALIKE])
    if len(rows) > MOST_ALIKE:
        names += f" and {len(rows) - MOST_ALIKE} more"
    newest = max((row.since for row in rows if row.since), default=None)
    return Attention(state, f"{len(rows)} {many}", names, newest, page, part=part)


def _alerts(alerts: Sequence[OpenAlert]) -> Iterable[Attention]:
    for each in alerts[:SHOWN_ALERTS]:
        where = f"{each.suite} on {each.target}"
        title = (
            f"{where}: {counted(each.lost, 'scenario')} {'passes' if each.lost == 1 else 'pass'} less often"
        )
        part = f"?state={each.state}#alert-{each.pk}"
        yield Attention("regressed", title, _triage_words(each), each.created, "regressions", part=part)
    rest = alerts[SHOWN_ALERTS:]
    if rest:
        title = counted(len(rest), "more untriaged regression")
        yield Attention("regressed", title, "Not triaged yet", rest[0].created, "regressions")


def _triage_words(alert: OpenAlert) -> str:
    return f"Untriaged, {f'assigned to {alert.assignee}' if alert.assignee else 'unassigned'}"


def _runs(latest: Sequence[RunRow], listed: Collection[int]) -> Iterable[Attention]:
    """Yield the newest failed runs without an alert row, errors first."""
    order = ("error", "errors", "failed", "below_its_bar")
    bad = [row for row in latest if row.state in order and row.run.id not in listed]
    for row in sorted(bad, key=lambda row: order.index(row.state)):
        results = f"{row.rate.passed} of {counted(row.rate.n, 'trial')} passed"
        if row.run.errors:
            results += f", {counted(row.run.errors, 'error')}"
        yield _of_a_run(row, row.state, "", row.run.error or results)


def _of_a_run(row: RunRow, state: str, more: str, detail: str) -> Attention:
    run = row.run
    return Attention(
        state, f"{run.suite_name} on {run.target}{more}", detail, run.finished, "run-detail", run.id
    )


def _targets(project: Project) -> Iterable[Attention]:
    """Yield the targets whose last check failed."""
    newest = TargetCheck.objects.filter(target=OuterRef("pk"), available__isnull=False).order_by("-pk")
    found = Target.objects.filter(project=project, accepted=True).annotate(
        check_available=Subquery(newest.values("available")[:1]),
        check_sentence=Subquery(newest.values("sentence")[:1]),
        check_at=Subquery(newest.values("at")[:1]),
    )
    broken = found.filter(check_available=False).order_by("name")
    for name, sentence, at in broken.values_list("name", "check_sentence", "check_at"):
        yield Attention("cannot start", f"{name} cannot start", sentence, at, "target-list")


def _stale(latest: Sequence[RunRow], now: datetime) -> Iterable[Attention]:
    """Yield the suites outdated for their tool, then those that have not run for long."""
    for row in latest:
        if row.run.stale:
            detail = "Its eval cases were generated for another version of the tool."
            yield _of_a_run(row, "stale", ": outdated for its tool", detail)
    for row in latest:
        finished = row.run.finished
        if finished and now - finished > IDLE and row.run.state == RunState.FINISHED:
            more = f" has not run for {(now - finished).days} days"
            yield _of_a_run(row, "stale", more, f"Latest run: {row.run.id}.")
