"""Projects limit their trials at once, and some come before others."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("teams", "0004_password_guesses")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="most_trials",
            field=models.PositiveIntegerField(
                null=True,
                blank=True,
                validators=[django.core.validators.MinValueValidator(1)],
                help_text="Most trials at once over all runs of the project; empty for no limit.",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="priority",
            field=models.SmallIntegerField(
                choices=[(-1, "low"), (0, "normal"), (1, "high")],
                default=0,
                db_default=0,
                help_text="Projects with a higher priority get free lanes first.",
            ),
        ),
    ]
