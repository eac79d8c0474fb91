"""Drop what went with 0.2.0, and carry over what people decided."""

from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models.functions import Coalesce


def carry_over(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Delete the open jobs of kinds that went, and name the rules of runs that were never counted again."""
    apps.get_model("runs", "Job").objects.filter(kind="grading").delete()
    first_rules = {"all": ["1", "", False]}
    apps.get_model("runs", "Run").objects.filter(counting={}).update(counting=first_rules)


def remove_digests(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove the digests that were notified of, and the event from channels."""
    apps.get_model("runs", "Notification").objects.filter(event="digest").delete()
    for channel in apps.get_model("runs", "Channel").objects.all():
        channel.events = [event for event in channel.events if event != "digest"]
        channel.save(update_fields=["events"])


def carry_triage(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep which alerts a person changed, and when those were decided that don't say so."""
    alerts = apps.get_model("runs", "Alert").objects
    alerts.exclude(first_triaged=None).update(triaged=True)
    is_decided = ~models.Q(state__in=("untriaged", "acknowledged", "investigating"))
    is_decided |= models.Q(evidence="not_confirmed")
    alerts.filter(is_decided, decided=None).update(decided=Coalesce("first_triaged", "created"))


def carry_labels(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Make labels of review rounds reviews of verdicts and criteria.

    A round that drew half passing and half failing judgings keeps of each half as many as a simple random sample has.
    """
    items = apps.get_model("runs", "RoundItem").objects.exclude(at=None).exclude(by=None)
    for drawn in apps.get_model("runs", "ReviewRound").objects.all():
        halves = [items.filter(round=drawn, judge_passed=passed).order_by("position") for passed in (True, False)]
        labels = [list(half.select_related("judging")) for half in halves]
        heaviest = max((label.weight for half in labels for label in half), default=1.0)
        for half in labels:
            for label in half[: round(len(half) * half[0].weight / heaviest)] if half else ():
                _carry_label(apps, label)


def _carry_label(apps: StateApps, label: Any) -> None:
    names = sorted(label.judging.content.get("criteria") or {})
    answers = [
        ("criterion", names.index(name), passed == label.judge_criteria[name])
        for name, passed in label.criteria.items()
        if name in names and name in label.judge_criteria
    ]
    agrees = None if label.passed is None else label.passed == label.judge_passed
    for polarity, position, same in [("verdict", 0, agrees), *answers]:
        apps.get_model("runs", "Review").objects.get_or_create(
            judging=label.judging,
            polarity=polarity,
            position=position,
            by=label.by,
            defaults={
                "word": "unclear" if same is None else "agree" if same else "disagree",
                "note": label.note if polarity == "verdict" else "",
                "at": label.at,
            },
        )


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_release_0_1_2")]

    operations = [
        migrations.RunPython(carry_over, migrations.RunPython.noop),
        migrations.DeleteModel(name="GradeRequest"),
        migrations.RemoveIndex(model_name="run", name="run_by_cache_key"),
        migrations.RemoveField(model_name="run", name="cache_key"),
        migrations.RemoveField(model_name="run", name="recounted"),
        migrations.RemoveField(model_name="run", name="repriced"),
        migrations.AlterField(
            model_name="job",
            name="kind",
            field=models.CharField(
                choices=[
                    ("proof", "Proof"),
                    ("reassessment", "Reassessment"),
                    ("check", "Check"),
                    ("try", "Try"),
                    ("batch", "Batch"),
                    ("channel", "Channel"),
                ],
                max_length=12,
            ),
        ),
        migrations.DeleteModel(name="SavedView"),
        migrations.RunPython(remove_digests, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="notification",
            name="event",
            field=models.CharField(
                choices=[
                    ("regression", "Regression"),
                    ("after_change", "Worse after a change of guidance or model"),
                    ("run_failed", "Run failed"),
                    ("assigned", "Alert assigned"),
                    ("test", "Test"),
                ],
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="alert",
            name="triaged",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(carry_triage, migrations.RunPython.noop),
        migrations.RemoveField(model_name="alert", name="first_triaged"),
        migrations.RunPython(carry_labels, migrations.RunPython.noop),
        migrations.DeleteModel(name="RoundItem"),
        migrations.DeleteModel(name="ReviewRound"),
        migrations.RemoveField(model_name="targettry", name="model"),
    ]
