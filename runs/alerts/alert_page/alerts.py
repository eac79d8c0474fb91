"""Read the regressions queue: alerts with regressed scenarios, since when, and what changed; their forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.http import QueryDict

from evalhub.teams.models import Project
from evalhub.web.paging import Page, page_below
from evaluators.statistics.measure_change import ChangeVerdict
from runs.alerts.api import NOBODY, AlertListFilters, is_revertible
from runs.compare.differences import FingerprintDifference, fingerprint_differences
from runs.compare.lost_scenarios import ChangedScenario, change_from_json, with_failing_commands, worst_losses
from runs.compare.measure_changes import HEADLINE
from runs.compare.shown_changes import ShownChange, alert_sentence, alert_title
from runs.models import Alert, Change, Run
from runs.models.comparison import OF_AMOUNTS, OF_SUITE, AlertKind, AlertState
from runs.results.digests import Digest, DigestedTrial, digests_of
from runs.results.layer_totals import LostGate
from scenarios.models import Upload

SIZE = 10
BROKEN_SHOWN = 3
"""Scenarios of a card's picture."""
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
    reason: str = ""
    """The failed trials' most frequent reason, such as a gate's message."""

    @property
    def outcomes(self) -> list[str]:
        return [outcome for _, outcome in self.trials]

    @property
    def failing(self) -> list[int]:
        """Return the failed trials to show."""
        return [pk for pk, outcome in self.trials if outcome != "pass"][:MOST_TRIALS]


@dataclass(frozen=True)
class Fresh:
    """The runs of an alert's *Confirm…* so far."""

    runs: tuple[int, ...]
    done: int
    trials: int

    @property
    def is_open(self) -> bool:
        return self.done < self.trials


@dataclass(frozen=True)
class AlertCard:
    """Content of an alert's card."""

    alert: Alert
    regressed: tuple[ShownChange, ...]
    """The headline measures that regressed."""
    lost: tuple[Lost, ...]
    differences: tuple[FingerprintDifference, ...]
    gate: LostGate | None = None
    """The gate that failed most often."""
    fresh: Fresh | None = None
    """None without a confirmation."""
    broken: tuple[ChangedScenario, ...] = ()
    """The largest losses, as strips of the baseline and of the run."""
    is_revertible: bool = False
    """Whether the guidance before it can be made its suite's again."""

    @property
    def since(self) -> int | None:
        """Return the first run in which one of the scenarios failed."""
        return min((each.since for each in self.lost if each.since), default=None)

    @property
    def title(self) -> str:
        """Return what it is called, such as `Worse after guidance 7`."""
        return alert_title(self.alert)

    @property
    def sentence(self) -> str:
        """Return what got worse, in a sentence; empty where the measures' sizes say it."""
        return alert_sentence(self.alert, self.regressed[0].change if self.regressed else None)

    @property
    def is_of_suite(self) -> bool:
        """Return whether scenarios or headline measures show it."""
        return self.alert.kind in OF_SUITE


def count_untriaged(project: Project) -> int:
    """Return the number of untriaged alerts, at most `MOST_COUNTED`. One query.

    Every page shows it, so its cost must not grow with years of untriaged alerts.
    """
    waiting = Alert.objects.filter(project=project, state=AlertState.UNTRIAGED)
    return waiting.order_by()[:MOST_COUNTED].count()


def _with_runs() -> QuerySet[Alert]:
    related = ("suite__project", "target", "guidance", "project", "baseline__guidance")
    adopted = Upload.objects.filter(suite=OuterRef("run__suite")).order_by("-pk").values("guidance")[:1]
    alerts = Alert.objects.select_related("assignee", *(f"run__{name}" for name in related))
    return alerts.annotate(adopted=Subquery(adopted)).defer(
        "run__target__definition", "run__guidance__files", "run__baseline__guidance__files"
    )


def alert_page(
    project: Project, state: str, filters: AlertListFilters, before: str
) -> tuple[Page[Alert], list[AlertCard]]:
    """Return one page of the matching alerts in a state, newest first. Three or four queries."""
    alerts = _with_runs().filter(filters.condition(), project=project, state=state)
    page = page_below(alerts, before, size=SIZE)
    return page, read_cards(page.rows)


def alert_card(project: Project, pk: int) -> AlertCard | None:
    """Return one alert of a project, None if missing. Three or four queries."""
    alerts = list(_with_runs().filter(project=project, pk=pk))
    return read_cards(alerts)[0] if alerts else None


def read_cards(alerts: Sequence[Alert]) -> list[AlertCard]:
    """Return the alerts with what regressed in them. Up to four queries, and one more where alerts were confirmed."""
    keys = [alert.run_id for alert in alerts]
    changes: dict[int, list[Change]] = {}
    for change in _changes(keys):
        changes.setdefault(change.run_id, []).append(change)
    baselines = [each.run.baseline_id for each in alerts if each.run.baseline_id]
    digests = digests_of([*keys, *baselines], why_of=keys)
    fresh = _fresh([each.confirmation_id for each in alerts if each.confirmation_id])
    found = [_card(each, changes.get(each.run_id, ()), digests, fresh) for each in alerts]
    said = iter(with_failing_commands([each for card in found for each in card.broken]))
    return [_with_reasons(card, [next(said) for _ in card.broken]) for card in found]


def _with_reasons(card: AlertCard, broken: Sequence[ChangedScenario]) -> AlertCard:
    """Return a card whose scenarios say why they broke as in `broken`."""
    why = {each.key: each.reason for each in broken}
    lost = tuple([replace(each, reason=why.get(each.key) or each.reason) for each in card.lost])
    return replace(card, broken=tuple(broken), lost=lost)


def _changes(runs: Sequence[int]) -> QuerySet[Change]:
    """Return these runs' regressed measures, their pass rates, and the scenarios that pass less often."""
    is_pass_rate = Q(measure__layer="trial", measure__name="pass")
    whole = Q(scenario=None) & (Q(verdict=ChangeVerdict.REGRESSED) | is_pass_rate)
    lost = Q(scenario__isnull=False, after__lt=F("before"))
    return (
        Change.objects.filter(whole | lost, run__in=runs).select_related("scenario").order_by("scenario__key")
    )


def _fresh(launches: Sequence[int]) -> dict[int, Fresh]:
    """Return the progress of confirmations by launch. One query, none without any."""
    if not launches:
        return {}
    rows: dict[int, list[tuple[int, int, int]]] = {}
    runs = Run.objects.filter(launch__in=launches).order_by("pk")
    for launch, pk, trials, still_open in runs.values_list("launch", "pk", "trials", "open"):
        rows.setdefault(launch, []).append((pk, trials - still_open, trials))
    return {
        launch: Fresh(
            tuple(pk for pk, _, _ in launch_runs),
            sum(n for _, n, _ in launch_runs),
            sum(n for _, _, n in launch_runs),
        )
        for launch, launch_runs in rows.items()
    }


def _card(
    alert: Alert, changes: Sequence[Change], digests: Mapping[int, Digest], fresh: Mapping[int, Fresh]
) -> AlertCard:
    digest = digests.get(alert.run_id, Digest())
    trials: dict[int, list[DigestedTrial]] = {}
    for trial in sorted(digest.ended, key=lambda each: each.pk):
        trials.setdefault(trial.scenario, []).append(trial)
    # Those of older releases name no measure.
    details = {
        each.detail["measure"]: each.detail
        for each in changes
        if each.scenario_id is None and "measure" in each.detail
    }
    regressed = tuple(ShownChange(change_from_json(details[name])) for name in _measures(alert, details))
    is_of_suite = alert.kind in OF_SUITE
    lost = tuple(
        _describe_loss(each, trials.get(each.scenario_id, ()))
        for each in changes
        if each.scenario_id and is_of_suite
    )
    baseline = alert.run.baseline
    differences = fingerprint_differences(baseline, alert.run) if baseline else []
    gate = digest.layers.lost if is_of_suite else None
    before = digests.get(alert.run.baseline_id or 0, Digest())
    return AlertCard(
        alert,
        regressed,
        lost,
        tuple(differences),
        gate,
        fresh.get(alert.confirmation_id or 0),
        tuple(worst_losses(before, digest, BROKEN_SHOWN)) if is_of_suite else (),
        is_revertible(alert, vars(alert)["adopted"]),
    )


def _measures(alert: Alert, details: Mapping[str, Any]) -> list[str]:
    """Return the measures that an alert is about, of those that regressed: the pass rate also where scenarios broke."""
    if alert.kind == AlertKind.DRIFT:
        return []
    if alert.kind in OF_AMOUNTS:
        return [name for name in (OF_AMOUNTS[AlertKind(alert.kind)],) if name in details]
    is_worse = {
        name: each["verdict"] == ChangeVerdict.REGRESSED or bool(each.get("broke"))
        for name, each in details.items()
    }
    return [name for name in HEADLINE if is_worse.get(name)]


def _describe_loss(change: Change, trials: Sequence[DigestedTrial]) -> Lost:
    key = change.scenario.key if change.scenario else ""
    reasons = Counter(each.lost[0] for each in trials if each.outcome != "pass" and each.lost)
    reason = reasons.most_common(1)[0][0] if reasons else ""
    outcomes = tuple((each.pk, each.outcome) for each in trials)
    return Lost(key, change.before or 0.0, change.after or 0.0, change.detail.get("since"), outcomes, reason)


TITLES = {each.value: each.label for each in AlertState} | {AlertState.WONT_FIX.value: "Won't fix, intended"}
"""The states of any alert; that of one alert is `Alert.state_label`."""


class AlertForm(forms.Form):
    """An alert's triage: only what was edited is saved."""

    state = forms.ChoiceField(
        choices=AlertState.choices,
        required=False,
        error_messages={"invalid_choice": "“%(value)s” is not an alert state. Use one of the buttons."},
    )
    assignee = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": "This person is not a member of the project. Choose a member."},
    )
    note = forms.CharField(required=False, max_length=5000, widget=forms.Textarea(attrs={"rows": 2}))
    link = forms.URLField(
        required=False,
        max_length=200,
        assume_scheme="https",
        error_messages={"invalid": "Enter a full URL, such as https://tracker.example/123."},
    )

    def __init__(self, members: Mapping[str, Any], alert: Alert, data: QueryDict | None = None) -> None:
        """Take the project's members by name, so that a page with many alerts queries them once."""
        self.alert, self.members = alert, members
        initial = {"state": alert.state, "note": alert.note, "link": alert.link}
        initial["assignee"] = alert.assignee.get_username() if alert.assignee else ""
        self.drawn = {name: _form_text(value) for name, value in initial.items()}
        """Stored values that the form sends back, to find what was edited."""
        super().__init__(data, initial=initial, auto_id=f"alert-{alert.pk}-%s")
        field = self.fields["assignee"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "Nobody"), *((name, name) for name in members)]
            if (name := initial["assignee"]) and name not in members:
                field.choices += [(name, f"{name} (no longer a member)")]

    def clean_assignee(self) -> Any:
        """Return the member, None for unassigned."""
        return self.members.get(self.cleaned_data["assignee"])

    def clean_link(self) -> str:
        """Return the link. Raises `ValidationError` unless it is a web URL."""
        link: str = self.cleaned_data["link"]
        if link and not link.startswith(("https://", "http://")):
            raise forms.ValidationError("Enter a URL that starts with https:// or http://.")
        return link

    def _is_edited(self, name: str) -> bool:
        """Return whether a field differs from what was drawn; without its button the state doesn't."""
        sent = self.data.get(name)
        if sent is None or (sent == "" and name == "state"):
            return False
        return _form_text(sent) != _form_text(self.data.get(f"was-{name}", self.drawn[name]))

    def changes(self) -> dict[str, Any]:
        """Return the edited fields that differ from the stored ones. Requires a valid form."""
        edited = {name: value for name, value in self.cleaned_data.items() if self._is_edited(name)}
        return {name: value for name, value in edited.items() if getattr(self.alert, name) != value}


def _form_text(value: Any) -> str:
    """Return a value as a form sends it, with normalised line ends."""
    return "" if value is None else str(value).replace("\r\n", "\n").strip()


class BulkForm(forms.Form):
    """A change of several alerts; empty fields stay as they are."""

    state = forms.ChoiceField(choices=[("", "Keep state"), *TITLES.items()], required=False)
    assignee = forms.ChoiceField(required=False)

    def __init__(self, members: Mapping[str, Any], data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="bulk-%s")
        self.members = members
        field = self.fields["assignee"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "Keep assignee"), (NOBODY, "Nobody"), *((name, name) for name in members)]

    def changes(self) -> dict[str, Any]:
        """Return what to change. Requires a valid form."""
        filled = {name: value for name, value in self.cleaned_data.items() if value}
        if "assignee" in filled:
            filled["assignee"] = self.members.get(filled["assignee"])
        return filled
