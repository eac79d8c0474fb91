from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scenarios", "0002_tool_files")]

    operations = [
        migrations.AddField(
            model_name="suiteversion",
            name="solutions",
            field=models.JSONField(default=dict),
        ),
    ]
