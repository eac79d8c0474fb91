"""Workers report which file store they write to."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0021_trial_activity")]

    operations = [
        migrations.AddField(
            model_name="worker", name="store", field=models.CharField(max_length=100, blank=True, default="", db_default="")
        ),
    ]
