"""Trials and preparations go back when a disk is full, and workers say how much room they have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0016_doing_exit")]

    operations = [
        migrations.AddField(
            model_name="trial", name="put_back", field=models.PositiveSmallIntegerField(default=0, db_default=0)
        ),
        migrations.AddField(
            model_name="run", name="put_back", field=models.PositiveSmallIntegerField(default=0, db_default=0)
        ),
        migrations.AddField(
            model_name="worker", name="problem", field=models.CharField(max_length=500, blank=True, default="", db_default="")
        ),
        migrations.AddField(model_name="worker", name="free_bytes", field=models.BigIntegerField(null=True)),
    ]
