"""A project's home and the list of projects: each suite on a target with a model is a line with its newest answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, OuterRef, Subquery, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from evalhub.lib.numbers import format_count, format_percent
from evalhub.teams import audit
from evalhub.teams.access import ProjectRequest, may_create_projects, project_page, projects_of
from evalhub.teams.models import AuditEvent, Project
from evalhub.web.charts import LineOfRuns, draw_small_line
from evalhub.web.middleware import STOP_POLLING, page_or_fragment
from evaluators.statistics.measure_change import DECIDED
from runs.compare.differences import FingerprintDifference, change_words, fingerprint_differences
from runs.compare.guidance.api import ImprovedGuidance, improved_guidance
from runs.compare.guidance.lift_findings import MeasuredLift, latest_lifts
from runs.compare.line import DrawnRun, draw_large, line_of_runs
from runs.compare.lost_scenarios import ChangedScenario, largest_gains, with_failing_commands, worst_losses
from runs.models import Alert, Run, Target, TargetCheck, Trial
from runs.models.comparison import OF_SUITE, OPEN_ALERTS, AlertState
from runs.models.run import MAINLINE, NOT_CONFIRMING, OPEN
from runs.models.trial import TrialState
from runs.results.digests import Digest, digests_of
from runs.results.progress import Progress, read_progress
from runs.results.run_list import RunAnswer, RunRow, read_rows
from runs.results.run_rows import listed_runs
from scenarios.models import SESSIONS

RECENT = 400
"""The newest runs, which are read for all lines."""
CARDS_SHOWN = 2
PICTURES_SHOWN = 12
"""Lines with a picture, cards included; the others are in the table."""
BROKEN_SHOWN = 3
ANSWER_WORDS: dict[RunAnswer, str] = {
    "regressed": "",
    "failed": "failed",
    "below_release_rule": "failed",
    "tool_not_started": "with errors",
    "errors": "with errors",
    "error": "with errors",
    "unchecked": "unchecked",
    "undecided": "undecided",
    "not_comparable": "undecided",
    "new_line": "new",
    "cancelled": "undecided",
    "improved": "improved",
    "small_change": "with a small change",
    "as_before": "as before",
    "as_expected": "as expected",
}
"""Answers in the order in which lines are shown, with what the sentence says of these lines; the title says regressed."""
ORDER = tuple(ANSWER_WORDS)
WORDS = [
    "No",
    "One",
    "Two",
    "Three",
    "Four",
    "Five",
    "Six",
    "Seven",
    "Eight",
    "Nine",
    "Ten",
    "Eleven",
    "Twelve",
]


@dataclass(frozen=True)
class HomeLine:
    """A suite on a target with a model over its last runs."""

    latest: RunRow
    runs: tuple[DrawnRun, ...]
    """The last runs, the oldest first."""

    @property
    def answer(self) -> RunAnswer:
        return self.latest.answer

    @property
    def is_after_change(self) -> bool:
        """Whether it regressed after a change of guidance, model or judge, so the tool isn't to blame."""
        return self.answer == "regressed" and self.latest.run.configuration_changed

    @cached_property
    def chart(self) -> LineOfRuns | None:
        """What its picture shows; None where no trial of the newest run passed or failed."""
        return line_of_runs(self.runs, self.answer)

    @property
    def label(self) -> str:
        """Say what its picture shows."""
        return f"Pass rate of the last {format_count(len(self.runs), 'run')}, the newest {format_percent(self.latest.rate.share)}"

    def picture(self, start: float) -> SafeString:
        """Return a small picture whose axis begins at `start`."""
        return draw_small_line(self.chart, label=self.label, start=start) if self.chart else SafeString("")


@dataclass(frozen=True)
class LineCard:
    """A line that regressed or improved: which of its scenarios did, and what changed."""

    line: HomeLine
    picture: SafeString
    scenarios: list[ChangedScenario]
    changes: tuple[FingerprintDifference, ...]
    since: datetime | None
    """When the first run of the regression ran; of an improvement, its newest run."""
    alert: Alert | None
    """Open, if there is one."""
    after: str
    """The intended change before it, such as `after guidance 7`; empty if the tool is to blame."""

    @property
    def is_worse(self) -> bool:
        return self.line.answer == "regressed"


@dataclass(frozen=True)
class HomeLines:
    """All lines of a project, the gravest first."""

    lines: tuple[HomeLine, ...]
    cards: tuple[LineCard, ...]
    """Lines that regressed; if none did, lines that improved."""
    idle: int
    """Lines that did not run for so long that they aren't shown."""
    guidance: Sequence[ImprovedGuidance] = ()
    """Guidance that improved a suite, as far as cards of worse lines leave room."""
    lifts: Sequence[MeasuredLift] = ()
    """What skills add, the newest first."""
    last_change: datetime | None = None
    """When the newest run with a change was compared; None where a line is worse, and where no run has one."""

    @cached_property
    def small_multiples(self) -> list[HomeLine]:
        """The lines with a small picture."""
        with_card = {card.line.latest.run.id for card in self.cards}
        left = [line for line in self.lines if line.latest.run.id not in with_card]
        return left[: PICTURES_SHOWN - len(self.cards)]

    @cached_property
    def start(self) -> float:
        """Where the axes of all small pictures begin."""
        return min([0.5, *(line.chart.start for line in self.small_multiples if line.chart)])

    @property
    def is_worse(self) -> bool:
        return self._number("regressed") > 0

    @property
    def title(self) -> str:
        """Say in a sentence whether anything got worse."""
        worse, of = self._number("regressed"), len(self.lines)
        changed = sum(line.is_after_change for line in self.lines)
        after = " after a change on purpose"
        if of == 1 and worse:
            return f"The only line is worse{after if changed else ''}"
        if worse > changed:
            more = f", {_word(changed).lower()} more{after}" if changed else ""
            return f"{_said_worse(worse - changed, of)}{more}"
        if worse:
            return f"{_said_worse(worse, of)}{after}"
        if self._number("as_before", "as_expected") < of:
            return "No line is known to be worse"
        word = "as before" if self._number("as_before") else "as expected"
        return f"The only line is {word}" if of == 1 else f"All {_word(of).lower()} lines are {word}"

    @property
    def others(self) -> str:
        """Say how the other lines are, such as `Eight as before, one undecided.`"""
        counts = Counter(ANSWER_WORDS[line.answer] for line in self.lines)
        words = dict.fromkeys(word for word in ANSWER_WORDS.values() if counts[word] and word)
        said = [f"{_word(counts[word]).lower()} {word}" for word in words]
        text = ", ".join(said)
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def _number(self, *answers: RunAnswer) -> int:
        return sum(line.answer in answers for line in self.lines)


def _said_worse(worse: int, of: int) -> str:
    return f"{_word(worse)} of {_word(of).lower()} lines {'is' if worse == 1 else 'are'} worse"


def _word(number: int) -> str:
    return WORDS[number] if number < len(WORDS) else f"{number:,}"


def home_lines(project: Project, *, now: datetime) -> HomeLines:
    """Return a project's lines on its default branch, of the newest runs.

    Six queries, three or four more where some regressed or improved, and four more where guidance did.
    """
    recent = Run.objects.filter(NOT_CONFIRMING, project=project, branch__in=MAINLINE, is_experiment=False)
    ended = recent.exclude(state__in=OPEN).exclude(suite__format=SESSIONS).order_by("-pk")
    columns = ("suite_id", "target_id", "model", "pk", "finished", *DrawnRun._fields)
    runs: dict[tuple[int, int, str], list[DrawnRun]] = {}
    newest: dict[tuple[int, int, str], tuple[int, datetime | None]] = {}
    for suite, target, model, pk, finished, *values in ended.values_list(*columns)[:RECENT]:
        newest.setdefault((suite, target, model), (pk, finished))
        runs.setdefault((suite, target, model), []).append(DrawnRun(*values))
    oldest = now - timedelta(days=settings.LINE_DAYS)
    shown = {key: pk for key, (pk, finished) in newest.items() if finished is None or finished >= oldest}
    latest = read_rows(listed_runs(list(shown.values())))
    lines = [HomeLine(row, tuple(reversed(runs[key]))) for key, row in zip(shown, latest, strict=True)]
    lines.sort(key=lambda line: (ORDER.index(line.answer), -line.latest.run.id))
    worse = _cards([line for line in lines if line.answer == "regressed"][:CARDS_SHOWN])
    left = CARDS_SHOWN - len(worse)
    guidance = improved_guidance(project, since=oldest, most=left) if left else []
    lifts = latest_lifts(Run.objects.filter(project=project, created__gte=oldest))[:CARDS_SHOWN]
    if worse:
        return HomeLines(tuple(lines), worse, len(newest) - len(shown), guidance, lifts)
    better = [line for line in lines if line.answer == "improved"][: left - len(guidance)]
    changed = recent.filter(verdict__in=DECIDED).order_by("-pk")
    return HomeLines(
        tuple(lines),
        _cards(better),
        len(newest) - len(shown),
        guidance,
        lifts,
        changed.values_list("finished", flat=True).first(),
    )


def _cards(lines: Sequence[HomeLine]) -> tuple[LineCard, ...]:
    shown = [line for line in lines if line.chart]
    if not shown:
        return ()
    keys = [line.latest.run.id for line in shown]
    runs = Run.objects.select_related("guidance", "baseline__guidance").in_bulk(keys)
    since = {key: runs[key].old_side.get("since") for key in keys}
    raised = Alert.objects.filter(
        run__in=[*keys, *filter(None, since.values())], kind__in=OF_SUITE, state__in=OPEN_ALERTS
    )
    alerts = {alert.run_id: alert for alert in raised}
    baselines = [run.baseline_id for run in runs.values() if run.baseline_id]
    digests = digests_of([*keys, *baselines], why_of=keys)
    first = Run.objects.in_bulk([key for key in since.values() if key])
    cards = [
        _card(
            line,
            runs[key],
            digests,
            first.get(since[key] or 0),
            alerts.get(key) or alerts.get(since[key] or 0),
        )
        for line, key in zip(shown, keys, strict=True)
    ]
    said = iter(with_failing_commands([each for card in cards for each in card.scenarios]))
    return tuple(replace(card, scenarios=[next(said) for _ in card.scenarios]) for card in cards)


def _card(
    line: HomeLine, run: Run, digests: Mapping[int, Digest], first: Run | None, alert: Alert | None
) -> LineCard:
    new, old = digests.get(run.pk), digests.get(run.baseline_id or 0)
    moved = worst_losses if line.answer == "regressed" else largest_gains
    return LineCard(
        line,
        draw_large(line.chart, line.label) if line.chart else SafeString(""),
        moved(old, new, BROKEN_SHOWN) if new and old else [],
        tuple(fingerprint_differences(run.baseline, run)) if run.baseline else (),
        (first or run).finished,
        alert,
        change_words(run.baseline, run) if run.configuration_changed else "",
    )


UNSHOWN = ("options", "fingerprint", "warnings", "target__definition", "guidance__files")
"""Columns of an open run that the home does not show."""
MOST_RUNNING = 5
DAYS = 7


class Day(NamedTuple):
    """What a day cost, judges included; None if no run of it has a known cost."""

    day: date
    cost_usd: float | None


class Waiting(NamedTuple):
    """What waits for somebody: a sentence, and the page with it."""

    text: str
    page: str


OF_RUNS = ("alert.confirm", "alert.triage", "baseline.set", "baseline.unset", "run.cancel", "run.request")
"""Actions of the audit log whose subjects name runs."""


class RecentEvent(NamedTuple):
    """A recent audit event, in words."""

    at: datetime
    by: str
    words: list[str]
    """Alternates between text and run numbers."""


def recent_event(event: AuditEvent) -> RecentEvent:
    """Return an audit event in words."""
    subject = f" {event.subject}" if event.subject else ""
    done = audit.action_text(event.action)
    words = [subject]
    if event.action in OF_RUNS:
        # In "2 runs, 7 to 8" the first number is a count.
        words = re.split(r"(?<!^ )\b([0-9]+)\b", subject)
    return RecentEvent(
        event.at, event.user.username if event.user else "somebody", [done + words[0], *words[1:]]
    )


@dataclass(frozen=True)
class ProjectSummary:
    """Content of a project's home."""

    lines: HomeLines
    untriaged: int
    """Untriaged regressions."""
    waiting: list[Waiting]
    days: list[Day]
    """The last seven days."""
    events: list[RecentEvent]

    @property
    def cost_usd(self) -> float | None:
        """The cost of the last seven days; None if none is known."""
        known = [day.cost_usd for day in self.days if day.cost_usd is not None]
        return sum(known) if known else None


def project_summary(project: Project, *, now: datetime) -> ProjectSummary:
    """Return a project's home without its open runs. Eight queries, eleven where a line regressed."""
    lines = home_lines(project, now=now)
    untriaged = Alert.objects.filter(project=project, state=AlertState.UNTRIAGED).count()
    events = AuditEvent.objects.filter(project=project).select_related("user")[:8]
    return ProjectSummary(
        lines=lines,
        untriaged=untriaged,
        waiting=_waiting(project, lines, untriaged),
        days=cost_by_day(project, now=now),
        events=[recent_event(event) for event in events],
    )


def cost_by_day(project: Project, *, now: datetime) -> list[Day]:
    """Return what each of the last days cost. One query."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight - timedelta(days=DAYS - 1)
    runs = Run.objects.filter(project=project, created__gte=first).order_by()
    costs = dict(runs.annotate(day=TruncDate("created")).values_list("day").annotate(cost=Sum("cost_usd")))
    days = ((first + timedelta(days=n)).date() for n in range(DAYS))
    return [Day(day, costs.get(day)) for day in days]


def _waiting(project: Project, lines: HomeLines, untriaged: int) -> list[Waiting]:
    """Return what needs somebody's attention, most urgent first. One query."""
    stale = sum(bool(line.latest.run.stale) for line in lines.lines)
    broken = _broken_targets(project)
    sentences = (
        (untriaged, format_count(untriaged, "untriaged regression"), "regressions"),
        (broken, f"{format_count(broken, 'target')} cannot start", "target-list"),
        (stale, f"{format_count(stale, 'suite')} outdated for the tool", "suite-list"),
    )
    return [Waiting(text, page) for n, text, page in sentences if n]


def _broken_targets(project: Project) -> int:
    """Return how many accepted targets could not start at their last check. One query."""
    newest = TargetCheck.objects.filter(target=OuterRef("pk"), available__isnull=False).order_by("-pk")
    targets = Target.objects.filter(project=project, accepted=True)
    return (
        targets.annotate(available=Subquery(newest.values("available")[:1])).filter(available=False).count()
    )


def running_now(project: Project) -> list[tuple[Run, Progress]]:
    """Return the open runs with their counters. One query."""
    trials = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.RUNNING).order_by()
    at_work = Subquery(trials.values("run").annotate(n=Count("pk")).values("n"))
    # Select by state first: ordered by key, the database would scan all runs of the project.
    keys = Run.objects.filter(project=project, state__in=OPEN).order_by().values("pk")
    runs = Run.objects.filter(pk__in=keys).annotate(at_work=at_work)
    newest = runs.select_related("suite", "target", "guidance").defer(*UNSHOWN).order_by("-pk")[:MOST_RUNNING]
    for run in newest:
        run.project = project
    return [(run, read_progress(run, vars(run)["at_work"] or 0)) for run in newest]


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the only project, or list all."""
    projects = projects_of(request.user)
    return redirect(projects[0]) if len(projects) == 1 else project_list(request)


@require_safe
def project_list(request: HttpRequest) -> HttpResponse:
    """List the user's projects."""
    return render(
        request,
        "compare/home/projects.html",
        {"projects": projects_of(request.user), "may_create": may_create_projects(request.user)},
    )


@require_safe
@project_page()
def project_home(request: ProjectRequest) -> HttpResponse:
    """Show whether a line got worse, what runs, what it costs, and all lines."""
    project = request.access.project
    running = running_now(project)
    summary = project_summary(project, now=timezone.now())
    context = {
        "summary": summary,
        "running": running,
        "line_days": settings.LINE_DAYS,
        "may_run": request.access.may("run"),
        "may_upload": request.access.may("upload"),
        # The navigation shows it, too.
        "untriaged": summary.untriaged,
    }
    return render(request, "compare/home/home.html", context)


@require_safe
@project_page()
def project_running(request: ProjectRequest) -> HttpResponse:
    """Show open runs; without any, htmx stops polling."""
    running = running_now(request.access.project)
    status = 200 if running else STOP_POLLING
    if not request.htmx:
        return redirect(request.access.project)
    return page_or_fragment(
        request, "compare/home/home.html", "compare/home/_running.html", {"running": running}, status=status
    )
