"""Drop what went with 0.2.0: saved views, the weekly digest and triage times."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models.functions import Coalesce


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


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_release_0_1_2")]

    operations = [
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
    ]
