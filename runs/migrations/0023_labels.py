"""Workers have labels, and targets need them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0022_worker_store")]

    operations = [
        migrations.AddField(model_name="target", name="labels", field=models.JSONField(default=list)),
        migrations.AddField(model_name="worker", name="labels", field=models.JSONField(default=list)),
    ]
