"""Metrics for a monitoring system: `/metrics` in the text format that Prometheus reads.

Every request counts from the database, so all web processes report the same. What lowers a count is stored, so that
counters only grow.
No name of a project, suite or target is in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evalhub import health
from evalhub.health import may_read
from runs.db.disk import free_bytes
from runs.db.transactions import write_transaction
from runs.models import Alert, MetricCounter, Run, Trial
from runs.models.comparison import AlertState
from runs.models.run import RunState
from runs.models.trial import TrialState

OPEN = (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)
COST_DIGITS = 6
"""Digits of a dollar; the database may add the same costs in another order."""


@dataclass(frozen=True)
class Metric:
    """One metric with its samples: label text, nothing for none, and value."""

    name: str
    kind: str
    help: str
    samples: list[tuple[str, float]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        lines += [f"{self.name}{label} {_number(value)}" for label, value in self.samples]
        return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """Return a number with all of its digits, whole ones without a point."""
    return f"{value:.0f}" if float(value).is_integer() else repr(float(value))


def collect_metrics() -> Iterator[Metric]:
    """Yield every metric. Eight queries, and a few more when a counter changed."""
    now = timezone.now()
    queue, workers = health.queue_health(now), health.list_workers(now)
    yield Metric("evalhub_info", "gauge", "Version.", [(f'{{version="{settings.VERSION}"}}', 1)])
    yield Metric("evalhub_trials_queued", "gauge", "Trials that wait.", [("", queue["queued"])])
    oldest = queue["oldest_seconds"] or 0.0
    yield Metric(
        "evalhub_queue_age_seconds", "gauge", "Age of the oldest request that waits.", [("", oldest)]
    )
    # Seconds after which a silent worker is not counted as working.
    seen = [each for each in workers if each["seen_seconds"] <= 60.0]
    yield Metric("evalhub_workers", "gauge", "Workers heard of in the last minute.", [("", len(seen))])
    yield Metric("evalhub_lanes", "gauge", "Running trials.", [("", sum(each["lanes"] for each in seen))])
    yield from _labels(seen)
    yield from _disks(seen)
    yield from _runs()
    waiting = Alert.objects.filter(state=AlertState.UNTRIAGED).count()
    yield Metric("evalhub_alerts_untriaged", "gauge", "Untriaged regressions.", [("", waiting)])


def _labels(workers: list[dict[str, Any]]) -> Iterator[Metric]:
    """Yield workers and queued trials of each label; a trial that needs two labels counts for both."""
    online = Counter(label for worker in workers for label in worker["labels"])
    queued = Counter(dict.fromkeys(online, 0))
    waiting = Trial.objects.filter(state=TrialState.QUEUED).exclude(run__target__labels=[]).order_by()
    for labels, trials in waiting.values_list("run__target__labels").annotate(n=Count("pk")):
        queued.update(dict.fromkeys(labels, trials))
    samples = [(f'{{label="{label}"}}', float(online[label])) for label in sorted(queued)]
    yield Metric("evalhub_label_workers", "gauge", "Workers heard of lately that have the label.", samples)
    samples = [(f'{{label="{label}"}}', float(queued[label])) for label in sorted(queued)]
    yield Metric("evalhub_label_trials_queued", "gauge", "Trials that wait for the label.", samples)


def _disks(workers: list[dict[str, Any]]) -> Iterator[Metric]:
    here = [("", float(free_bytes(settings.DATA_DIR)))]
    yield Metric(
        "evalhub_data_free_bytes", "gauge", "Free bytes of the data directory, as web sees it.", here
    )
    known = [each for each in workers if each["free_bytes"] is not None]
    samples = [(f'{{worker="{each["name"]}"}}', float(each["free_bytes"])) for each in known]
    yield Metric("evalhub_worker_free_bytes", "gauge", "Free bytes of each worker's fullest disk.", samples)


def _runs() -> Iterator[Metric]:
    states = dict(Run.objects.filter(state__in=OPEN).order_by().values_list("state").annotate(n=Count("pk")))
    samples = [(f'{{state="{state.value}"}}', float(states.get(state, 0))) for state in OPEN]
    yield Metric("evalhub_runs_open", "gauge", "Runs that are not over.", samples)
    counters = ("passed", "failed", "errors", "cancelled")
    sums = Run.objects.order_by().aggregate(
        **{name: Sum(name) for name in counters},
        cost=Sum("cost_usd"),
        closed=Count("pk", filter=~Q(state__in=OPEN)),
    )
    cost = round(sums["cost"] or 0.0, COST_DIGITS)
    yield from _counters(
        Metric("evalhub_runs_closed_total", "counter", "Runs that are over.", [("", sums["closed"])]),
        Metric(
            "evalhub_trials_total",
            "counter",
            "Trials that are over.",
            [(f'{{outcome="{name}"}}', float(sums[name] or 0)) for name in counters],
        ),
        Metric("evalhub_cost_usd_total", "counter", "Known cost of all runs.", [("", cost)]),
    )


def _counters(*metrics: Metric) -> Iterator[Metric]:
    """Yield counters that never go down, although a retry, a removal or new prices lower what they count."""
    counted = {f"{metric.name}{label}": value for metric in metrics for label, value in metric.samples}
    known = {row.sample: row for row in MetricCounter.objects.filter(sample__in=counted)}
    if any(sample not in known or known[sample].counted != value for sample, value in counted.items()):
        known = _store_counters(counted)
    for metric in metrics:
        samples = [(label, value + known[f"{metric.name}{label}"].lowered) for label, value in metric.samples]
        yield replace(metric, samples=samples)


def _store_counters(counted: Mapping[str, float]) -> dict[str, MetricCounter]:
    """Store what was counted now, and by how much it is lower than before; return the rows by sample."""
    with write_transaction():
        rows = [MetricCounter(sample=sample, counted=value) for sample, value in counted.items()]
        MetricCounter.objects.bulk_create(rows, ignore_conflicts=True)
        # Locked, because several web processes may be read at once.
        locked = MetricCounter.objects.select_for_update().filter(sample__in=counted).order_by("pk")
        known = {row.sample: row for row in locked}
        for sample, row in known.items():
            row.lowered = round(row.lowered + max(0.0, row.counted - counted[sample]), COST_DIGITS)
            row.counted = counted[sample]
        MetricCounter.objects.bulk_update(known.values(), ["counted", "lowered"])
    return known


@never_cache
@login_not_required
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """Answer with every metric, 403 for strangers."""
    if not may_read(request):
        sentence = "Metrics are read from this machine, or with EVALHUB_METRICS_TOKEN as a bearer token.\n"
        return HttpResponse(sentence, status=403, content_type="text/plain; charset=utf-8")
    return HttpResponse(
        "".join(map(str, collect_metrics())), content_type="text/plain; version=0.0.4; charset=utf-8"
    )
