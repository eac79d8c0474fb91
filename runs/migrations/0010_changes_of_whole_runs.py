"""Runs that were closed before a run as a whole was held against its baseline get that comparison."""

from collections.abc import Iterator
from itertools import islice
from statistics import fmean

from django.db import migrations

AT_ONCE = 100
"""Runs whose rates are in memory together."""
GRAVEST_FIRST = ("regressed", "improved")


def write_changes(apps, schema_editor, at_once=AT_ONCE):
    """Write the change of the pass rate of every closed run that has a baseline and none; what is there stays."""
    measure = apps.get_model("runs", "Measure").objects.filter(layer="trial", name="pass").first()
    if measure is None:
        return
    runs = _without(apps)
    while some := list(islice(runs, at_once)):
        _write(apps, measure, some)


def _without(apps) -> Iterator[tuple[int, int]]:
    """Yield run and baseline, oldest first."""
    Run, Change = apps.get_model("runs", "Run"), apps.get_model("runs", "Change")
    told = Change.objects.filter(scenario=None, measure__layer="trial", measure__name="pass").values("run")
    closed = Run.objects.filter(state__in=["finished", "cancelled"]).exclude(baseline=None)
    # In memory: two numbers a run, and on SQLite no cursor stays open while rows are written.
    return iter(list(closed.exclude(pk__in=told).order_by("pk").values_list("pk", "baseline")))


def _write(apps, measure, pairs):
    Change = apps.get_model("runs", "Change")
    rates = _rates(apps, measure, {run for pair in pairs for run in pair})
    verdicts = {}
    runs = [run for run, _ in pairs]
    for run, verdict in Change.objects.filter(run__in=runs, measure=measure).values_list("run", "verdict"):
        verdicts.setdefault(run, set()).add(verdict)
    found = []
    for run, baseline in pairs:
        before, after = rates.get(baseline, {}), rates.get(run, {})
        both = before.keys() & after.keys()
        if both:
            said = verdicts.get(run, set())
            verdict = next((each for each in GRAVEST_FIRST if each in said), "same")
            values = {"before": fmean(before[each] for each in both), "after": fmean(after[each] for each in both)}
            found.append(Change(run_id=run, baseline_id=baseline, measure=measure, verdict=verdict, **values))
    Change.objects.bulk_create(found)


def _rates(apps, measure, runs):
    """Return the pass rate of each scenario of these runs."""
    rows = apps.get_model("runs", "RunMeasure").objects.filter(run__in=runs, measure=measure)
    found = {}
    for run, scenario, mean in rows.exclude(scenario=None).values_list("run", "scenario", "mean"):
        found.setdefault(run, {})[scenario] = mean
    return found


class Migration(migrations.Migration):
    dependencies = [("runs", "0009_run_digest")]
    operations = [migrations.RunPython(write_changes, migrations.RunPython.noop, elidable=True)]
