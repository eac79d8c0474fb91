"""Drop further runs, and what a run's page computes when it is shown."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_carry_rounds")]
    operations = [
        migrations.DeleteModel(name="RunDigest"),
        migrations.RemoveIndex("run", "run_more_of"),
        migrations.RemoveField("run", "more_of"),
        migrations.RemoveIndex("trial", "trial_of_run"),
        migrations.AddIndex(
            "run", models.Index(condition=models.Q(("reference__isnull", False)), fields=["reference"], name="run_by_reference")
        ),
        migrations.AddIndex(
            "trial", models.Index(fields=["run", "scenario", "index", "state", "outcome", "round"], name="trial_of_run")
        ),
    ]
