"""Remove the second count of recorded trials, by their agents' events."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def remove_reported(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove the measures by events beside the recorded ones."""
    apps.get_model("runs", "RunMeasure").objects.filter(measure__layer="reported").delete()
    apps.get_model("runs", "Measure").objects.filter(layer="reported").delete()


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_names_of_times")]
    operations = [migrations.RunPython(remove_reported, migrations.RunPython.noop)]
