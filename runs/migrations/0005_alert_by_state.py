from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_target_check")]

    operations = [
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["project", "state", "-id"], name="alert_by_state"),
        ),
    ]
