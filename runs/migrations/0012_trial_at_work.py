"""Trials say which worker carries them, and what their agents do meanwhile."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0011_indexes_once")]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="worker",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="trial",
            name="doing",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
    ]
