"""Running trials say how many calls their agents have made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0013_target_versions")]

    operations = [
        migrations.AddField(
            model_name="trial", name="calls_so_far", field=models.PositiveIntegerField(null=True)
        ),
    ]
