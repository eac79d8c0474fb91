"""Running trials say what the last call of their agents came to."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0015_judge_versions")]

    operations = [
        migrations.AddField(model_name="trial", name="doing_exit", field=models.IntegerField(null=True)),
    ]
