"""Compose an event's message from what is stored."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Count

from evalhub.lib.limits import LONGEST_ERROR
from evalhub.lib.numbers import format_count
from evaluators.name_lists import list_names
from evaluators.redaction import redact_patterns
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from evaluators.statistics.verdict_sentences import (
    describe_interval,
    describe_size,
    explain_verdict,
    scenarios_worse,
)
from runs.compare.differences import change_words
from runs.compare.lost_scenarios import (
    ChangedScenario,
    changes_of_run,
    lost_keys,
    stored_changes,
    with_failing_commands,
    worst_losses,
)
from runs.compare.measure_changes import HEADLINE
from runs.compare.shown_changes import alert_sentence, alert_title, reference_words
from runs.models import Alert, CommandRecord, Notification, Run
from runs.models.comparison import OF_AMOUNTS, OF_SUITE, AlertKind, Evidence
from runs.models.notification import NotificationEvent
from runs.results.digests import digests_of
from runs.results.measures import label_of_key


class NothingToSay(Exception):
    """The event's reason is gone; the message is a sentence."""


@dataclass(frozen=True)
class NotificationMessage:
    """A message as plain values, the same for every channel."""

    title: str
    lines: list[str]
    link: str
    facts: list[list[str]]
    """What it is about, as pairs of label and value: databases don't keep the order of an object."""
    data: dict[str, Any] = field(default_factory=dict)
    """The same for programs."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compose(notification: Notification) -> NotificationMessage:
    """Return an event's message. Raises `NothingToSay` if its run, alert or person is gone."""
    if notification.content:
        return NotificationMessage(**notification.content)
    if notification.event == NotificationEvent.TEST:
        return _test(notification)
    run = _run(notification)
    if notification.event == NotificationEvent.RUN_FAILED:
        return _run_failed(run)
    if notification.alert is None:
        raise NothingToSay("The regression was taken back before this was sent.")
    if notification.event == NotificationEvent.ASSIGNED:
        return _compose_assigned(notification, notification.alert, run)
    return _compose_alert(notification.alert, run)


def absolute_url(path: str) -> str:
    """Return the address of a page, from EVALHUB_URL."""
    return f"{settings.PUBLIC_URL}{path}"


def _run(notification: Notification) -> Run:
    runs = Run.objects.select_related("project", "suite", "target", "guidance", "baseline")
    run = runs.filter(pk=notification.run_id or 0).first()
    if run is None:
        raise NothingToSay("The run was deleted before this was sent.")
    return run


def _facts(run: Run) -> list[list[str]]:
    facts = {
        "Project": run.project.name,
        "Run": str(run.pk),
        "Suite": run.suite.name,
        "Target": run.target.name,
        "Model": run.model,
        "Branch": run.branch,
    }
    return [[name, value] for name, value in facts.items() if value]


def _data(run: Run) -> dict[str, Any]:
    return {
        "project": run.project.slug,
        "run": run.pk,
        "suite": run.suite.slug,
        "target": run.target.name,
        "model": run.model,
        "branch": run.branch,
        "outcome": run.outcome,
        "verdict": run.verdict,
        "baseline": run.baseline_id,
    }


def _compose_alert(alert: Alert, run: Run) -> NotificationMessage:
    alert.run = run
    what = alert_title(alert)
    if alert.kind == AlertKind.REGRESSION:
        what = f"{alert.get_evidence_display()} regression"
    title = f"{what}: {run.suite.name} on {run.target.name}, run {run.pk}"
    stored = stored_changes(run.pk)
    changes = [each for each in stored if _is_about(alert, each)]
    measures = [
        {
            "measure": change.measure,
            "effect": change.effect,
            "lower": change.lower,
            "upper": change.upper,
            "sentence": verdict_sentence(change),
        }
        for change in changes
    ]
    sentence = alert_sentence(alert, changes[0] if changes else None)
    lines = [sentence] if sentence else []
    if alert.kind in OF_SUITE:
        lines += [
            *_what_broke(run, changes),
            *map(verdict_sentence, changes),
            f"Compared with {reference_words(run.old_side, run.baseline_id)}; {alert.get_evidence_display().lower()}.",
        ]
    if alert.reason:
        lines.append(alert.reason)
    data = {
        **_data(run),
        "alert": alert.pk,
        "kind": alert.kind,
        **({"changed": change_words(run.baseline, run)} if alert.kind == AlertKind.AFTER_CHANGE else {}),
        **({"drift": alert.drift} if alert.drift else {}),
        "suspected": alert.evidence != Evidence.CONFIRMED,
        "evidence": alert.evidence,
        "named": alert.named,
        "measures": measures,
    }
    return NotificationMessage(title, lines, absolute_url(run.get_absolute_url()), _facts(run), data)


def _is_about(alert: Alert, change: MeasureChange) -> bool:
    """Return whether a change is one of those that an alert is about, also where only scenarios of it broke."""
    if alert.kind in OF_AMOUNTS:
        return change.measure == OF_AMOUNTS[AlertKind(alert.kind)]
    is_worse = change.verdict is ChangeVerdict.REGRESSED or bool(change.broke)
    return alert.kind in OF_SUITE and change.measure in HEADLINE and is_worse


def _what_broke(run: Run, changes: list[MeasureChange]) -> list[str]:
    """Return the tool's version, the command that failed most and the scenarios that broke, as one line or none."""
    broke = list(dict.fromkeys(key for change in changes for key in change.broke))
    broke = broke or lost_keys(changes_of_run(run.pk))
    parts = []
    if run.tool_version:
        before = run.baseline.tool_version if run.baseline else ""
        changed = f" (before: {before})" if before and before != run.tool_version else ""
        parts.append(f"{run.tool_version}{changed}")
    failing = CommandRecord.objects.filter(trial__run=run, trial__outcome="fail", failed=True, help=False)
    if broke:
        failing = failing.filter(trial__scenario__key__in=broke)
    most = failing.values("subcommand").annotate(count=Count("pk")).order_by("-count", "subcommand").first()
    if most:
        parts.append(
            f"{most['subcommand'] or 'a call without subcommand'} failed in {format_count(most['count'], 'call')}"
        )
    if broke:
        parts.append(f"{'scenario' if len(broke) == 1 else 'scenarios'} {list_names(broke, 5)}")
    why = [f"{each.key}: {redact_patterns(each.reason)}" for each in _worst(run) if each.reason]
    return [*([f"{'; '.join(parts)}."] if parts else []), *why]


def _worst(run: Run) -> list[ChangedScenario]:
    """Return the scenario that lost most since the baseline with why, as a list. Up to three queries."""
    digests = digests_of([run.pk, run.baseline_id], why_of=[run.pk]) if run.baseline_id else {}
    old, new = digests.get(run.baseline_id or 0), digests.get(run.pk)
    return with_failing_commands(worst_losses(old, new, 1)) if old and new else []


def verdict_sentence(change: MeasureChange) -> str:
    """Return a change in words: measure, size, interval, scenarios and what the verdict rests on."""
    within = f" (95 % interval {limits})" if (limits := describe_interval(change)) else ""
    moved = f"{label_of_key(change.measure)} {describe_size(change, change.effect)}{within}"
    moved = f"{moved}, {scenarios_worse(change)}."
    # The p of a regression is on the run's page.
    is_by_p = change.verdict is ChangeVerdict.REGRESSED and not (change.broke or change.mended)
    return moved if is_by_p else f"{moved} {explain_verdict(change)}"


def _run_failed(run: Run) -> NotificationMessage:
    why = redact_patterns(run.error).strip()[:LONGEST_ERROR]
    why = why or f"{run.errors} of {run.trials} trials ended as errors; no trial failed."
    title = f"Run {run.pk} failed: {run.suite.name} on {run.target.name}"
    return NotificationMessage(
        title, [why], absolute_url(run.get_absolute_url()), _facts(run), {**_data(run), "error": why}
    )


def _compose_assigned(notification: Notification, alert: Alert, run: Run) -> NotificationMessage:
    person = notification.to
    if person is None or alert.assignee_id != person.pk:
        raise NothingToSay("The alert was assigned to somebody else before this was sent.")
    if not run.project.memberships.filter(user=person).exists():
        raise NothingToSay(f"{person.get_username()} left the project before this was sent.")
    by = notification.by.get_username() if notification.by else "Somebody"
    name = person.get_username()
    title = f"Assigned to {name}: regression of {run.suite.name} on {run.target.name}, run {run.pk}"
    proof = alert.get_evidence_display().lower()
    lines = [f"{by} assigned the {proof} regression of run {run.pk} to {name}."]
    if alert.note:
        lines.append(f"Note: {redact_patterns(alert.note)[:LONGEST_ERROR]}")
    data = {**_data(run), "alert": alert.pk, "assignee": name, "by": by}
    return NotificationMessage(
        title, lines, absolute_url(f"/p/{run.project.slug}/regressions/?assignee={name}"), _facts(run), data
    )


def _test(notification: Notification) -> NotificationMessage:
    by = notification.by.get_username() if notification.by else "Somebody"
    project = notification.project
    return NotificationMessage(
        f"Test from evalhub, project {project.name}",
        [f"{by} sent this test. The channel works."],
        absolute_url(project.get_absolute_url()),
        [["Project", project.name]],
        {"project": project.slug},
    )
