"""Drop the index by which SQLite read a measure's rows of all runs, and find trials without a cost by one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_no_further_runs")]
    operations = [
        *(
            migrations.AlterField(
                name,
                "measure",
                models.ForeignKey(
                    "runs.measure", on_delete=models.deletion.PROTECT, related_name="+", db_index=False
                ),
            )
            for name in ("latermeasure", "runmeasure")
        ),
        migrations.AddIndex(
            "trial",
            models.Index(
                fields=["run", "outcome"], name="trial_without_cost", condition=models.Q(cost_usd=None)
            ),
        ),
    ]
