from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db import migrations

EXPIRES = {"proof": 1, "reassessment": 6, "grading": 1, "check": 5 / 60, "try": 5 / 60}
"""Hours after which a request that no worker has taken is given up."""


def carry_over(apps: Any, schema_editor: Any) -> None:
    """Store a job for everything that is requested and not done; what a worker has ends with its lease."""
    jobs = apps.get_model("runs", "Job").objects.using(schema_editor.connection.alias)
    model = jobs.model
    jobs.bulk_create(model(**values) for values in open_jobs(apps, schema_editor.connection.alias))


def open_jobs(apps: Any, alias: str) -> Iterator[dict[str, Any]]:
    """Yield the columns of each job."""
    for kind, rows in open_requests(apps, alias).items():
        for row in rows.iterator():
            created = row.asked if kind == "check" else row.created
            taken = row.started is not None if kind == "grading" else row.worker != ""
            labels = {"check": lambda row: row.target.labels, "try": lambda row: row.labels}
            yield {
                "kind": kind,
                "subject": row.pk,
                "labels": labels[kind](row) if kind in labels else [],
                "expires": created + timedelta(hours=EXPIRES[kind]),
                "attempts": int(taken),
                # Checks and tries had no lease: their worker was stopped for the upgrade.
                "token": (getattr(row, "token", "") or "before 0.2.0") if taken else "",
                "lease_until": getattr(row, "lease_until", 0.0),
            }
    batches = apps.get_model("runs", "ProviderBatch").objects.using(alias).filter(state="submitted")
    for batch in batches.select_related("run__launch", "run__target").iterator():
        yield {
            "kind": "batch",
            "subject": batch.run_id,
            "labels": batch.run.target.labels,
            "launch": batch.run.launch,
            "due": batch.next_look,
            "attempts": batch.looks,
        }
    deliveries = apps.get_model("runs", "Delivery").objects.using(alias)
    opened = deliveries.filter(state__in=["queued", "sending"])
    for channel in opened.order_by().values_list("channel", flat=True).distinct():
        yield {"kind": "channel", "subject": channel}


def open_requests(apps: Any, alias: str) -> dict[str, Any]:
    """Return the unfinished requests of each kind."""

    def rows(name: str) -> Any:
        return apps.get_model("runs", name).objects.using(alias)

    return {
        "proof": rows("SuiteProof").filter(finished=None),
        "reassessment": rows("Reassessment").filter(finished=None),
        "grading": rows("GradeRequest").filter(result__isnull=True),
        "check": rows("TargetCheck").filter(at=None).select_related("target"),
        "try": rows("TargetTry").filter(result__isnull=True),
    }


class Migration(migrations.Migration):
    dependencies = [("runs", "0063_jobs")]

    operations = [
        migrations.RunPython(carry_over, migrations.RunPython.noop),
        migrations.RemoveField("delivery", "lease_until"),
        migrations.RemoveField("delivery", "token"),
        migrations.RemoveField("graderequest", "lease_until"),
        migrations.RemoveField("graderequest", "started"),
        migrations.RemoveField("graderequest", "token"),
        migrations.RemoveField("providerbatch", "looks"),
        migrations.RemoveField("providerbatch", "next_look"),
        migrations.RemoveField("reassessment", "lease_until"),
        migrations.RemoveField("reassessment", "token"),
        migrations.RemoveField("reassessment", "worker"),
        migrations.RemoveField("suiteproof", "lease_until"),
        migrations.RemoveField("suiteproof", "token"),
        migrations.RemoveField("suiteproof", "worker"),
        migrations.RemoveField("targettry", "labels"),
    ]
