"""Read the regressions queue: alerts with regressed scenarios, since when, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from evalhub.teams.models import Project
from evalhub.web.paging import Page, page_below
from evaluators.regression import ChangeVerdict
from runs.models import Alert, Change, RunMeasure, Trial
from runs.models.comparison import AlertState
from runs.models.trial import TrialState
from runs.pages.changes import ShownChange
from runs.warehouse.alert_filters import AlertListFilters
from runs.warehouse.differences import Difference, fingerprint_differences
from runs.warehouse.measure_changes import HEADLINE, change_from_json

SIZE = 10
MOST_TRIALS = 5
"""Trials linked per scenario of a card."""
MOST_COUNTED = 100
"""Largest number of alerts shown in the navigation."""


@dataclass(frozen=True)
class Lost:
    """A scenario that passes less often than in the baseline."""

    key: str
    before: float
    after: float
    since: int | None
    """The first run of the current series of failures."""
    trials: tuple[tuple[int, str], ...]
    """Key and outcome."""

    @property
    def outcomes(self) -> list[str]:
        return [outcome for _, outcome in self.trials]

    @property
    def failing(self) -> list[int]:
        """Return the failed trials to show."""
        return [pk for pk, outcome in self.trials if outcome != "pass"][:MOST_TRIALS]


@dataclass(frozen=True)
class AlertCard:
    """Content of an alert's card."""

    alert: Alert
    regressed: tuple[ShownChange, ...]
    """The headline measures that regressed."""
    lost: tuple[Lost, ...]
    differences: tuple[Difference, ...]

    @property
    def since(self) -> int | None:
        """Return the first run in which one of the scenarios failed."""
        return min((each.since for each in self.lost if each.since), default=None)


def untriaged(project: Project) -> int:
    """Return the number of untriaged alerts, at most `MOST_COUNTED`. One query.

    Every page shows it, so its cost must not grow with years of untriaged alerts.
    """
    waiting = Alert.objects.filter(project=project, state=AlertState.UNTRIAGED)
    return waiting.order_by()[:MOST_COUNTED].count()


def _with_runs() -> QuerySet[Alert]:
    related = ("suite", "target", "guidance", "project", "baseline__guidance")
    return Alert.objects.select_related("assignee", *(f"run__{name}" for name in related)).defer(
        "run__target__definition", "run__guidance__files", "run__baseline__guidance__files"
    )


def alert_page(
    project: Project, state: str, filters: AlertListFilters, before: str
) -> tuple[Page[Alert], list[AlertCard]]:
    """Return one page of the matching alerts in a state, newest first. Four queries."""
    alerts = _with_runs().filter(filters.condition(), project=project, state=state)
    page = page_below(alerts, before, size=SIZE)
    return page, cards(page.rows)


def alert_card(project: Project, pk: int) -> AlertCard | None:
    """Return one alert of a project, None if missing. Four queries."""
    alerts = list(_with_runs().filter(project=project, pk=pk))
    return cards(alerts)[0] if alerts else None


def cards(alerts: Sequence[Alert]) -> list[AlertCard]:
    """Return the alerts with what regressed in them. Three queries."""
    keys = [alert.run_id for alert in alerts]
    changes, headline = _regressions(keys), _headline(keys)
    trials = _trials(changes)
    return [
        _card(
            alert,
            headline.get(alert.run_id, ()),
            [each for each in changes if each.run_id == alert.run_id],
            trials,
        )
        for alert in alerts
    ]


def _headline(runs: Sequence[int]) -> dict[int, tuple[ShownChange, ...]]:
    """Return the headline measures that regressed in each of these runs."""
    rows = Change.objects.filter(run__in=runs, scenario=None, verdict=ChangeVerdict.REGRESSED)
    found: dict[int, dict[str, ShownChange]] = {}
    for run, detail in rows.values_list("run", "detail"):
        if detail.get("measure") in HEADLINE:
            found.setdefault(run, {})[detail["measure"]] = ShownChange(change_from_json(detail))
    return {run: tuple(by[name] for name in HEADLINE if name in by) for run, by in found.items()}


def _regressions(runs: Sequence[int]) -> list[Change]:
    """Return these runs' regressions, each with the first run (`since`) of its series of failures."""
    same = RunMeasure.objects.filter(
        scenario=OuterRef("scenario"),
        measure=OuterRef("measure"),
        run__target=OuterRef("run__target"),
        run__model=OuterRef("run__model"),
    )
    good = same.filter(run__lt=OuterRef("run"), mean__gte=1.0).order_by("-run").values("run")[:1]
    failing = same.filter(run__gt=OuterRef("last_good"), mean__lt=1.0).order_by("run").values("run")[:1]
    lost = Change.objects.filter(run__in=runs, after__lt=F("before")).exclude(scenario=None)
    lost = lost.annotate(last_good=Coalesce(Subquery(good, output_field=IntegerField()), 0))
    lost = lost.annotate(since=Subquery(failing, output_field=IntegerField()))
    return list(lost.select_related("scenario").order_by("scenario__key"))


def _trials(changes: Iterable[Change]) -> dict[tuple[int, int], list[tuple[int, str]]]:
    pairs = {(each.run_id, each.scenario_id) for each in changes}
    rows = Trial.objects.filter(
        run__in={run for run, _ in pairs},
        scenario__in={scenario for _, scenario in pairs},
        state=TrialState.FINISHED,
    )
    trials: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for run, scenario, pk, outcome in rows.order_by("pk").values_list("run", "scenario", "pk", "outcome"):
        trials.setdefault((run, scenario), []).append((pk, outcome))
    return trials


def _card(
    alert: Alert,
    regressed: tuple[ShownChange, ...],
    changes: Iterable[Change],
    trials: dict[tuple[int, int], list[tuple[int, str]]],
) -> AlertCard:
    lost = tuple(_lost(each, trials) for each in changes)
    baseline = alert.run.baseline
    differences = fingerprint_differences(baseline, alert.run) if baseline else []
    return AlertCard(alert, regressed, lost, tuple(differences))


def _lost(change: Change, trials: dict[tuple[int, int], list[tuple[int, str]]]) -> Lost:
    key = change.scenario.key if change.scenario else ""
    own = trials.get((change.run_id, change.scenario_id or 0), [])
    since: int | None = change.since  # type: ignore[attr-defined]  # annotated by `_regressions`
    return Lost(key, change.before or 0.0, change.after or 0.0, since, tuple(own))
