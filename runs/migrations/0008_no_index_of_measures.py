"""Drop the index by which SQLite read a measure's rows of all runs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_no_further_runs")]
    operations = [
        migrations.AlterField(
            name,
            "measure",
            models.ForeignKey(
                "runs.measure", on_delete=models.deletion.PROTECT, related_name="+", db_index=False
            ),
        )
        for name in ("latermeasure", "runmeasure")
    ]
