"""Launches have a priority within their project."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0023_labels")]

    operations = [
        migrations.AddField(
            model_name="launch",
            name="priority",
            field=models.SmallIntegerField(
                choices=[(-1, "low"), (0, "normal"), (1, "high")], default=0, db_default=0
            ),
        ),
    ]
