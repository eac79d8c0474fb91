from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_batch_answers")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="starts",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
