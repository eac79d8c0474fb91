"""Drop what went with 0.2.0: saved views and the weekly digest."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def remove_digests(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove the digests that were notified of, and the event from channels."""
    apps.get_model("runs", "Notification").objects.filter(event="digest").delete()
    for channel in apps.get_model("runs", "Channel").objects.all():
        channel.events = [event for event in channel.events if event != "digest"]
        channel.save(update_fields=["events"])


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
    ]
