from django.db import migrations, models
from django.db.models import OuterRef, Subquery


def store_pass_rates(apps, schema_editor):
    """Store the mean over scenarios of runs that closed in older releases."""
    measures = apps.get_model("runs", "RunMeasure").objects.filter(
        run=OuterRef("pk"), scenario=None, measure__layer="trial", measure__name="pass"
    )
    apps.get_model("runs", "Run").objects.update(pass_rate=Subquery(measures.values("mean")[:1]))


class Migration(migrations.Migration):
    dependencies = [("runs", "0070_alerts_of_each_kind")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="pass_rate",
            field=models.FloatField(null=True),
        ),
        migrations.RunPython(store_pass_rates, migrations.RunPython.noop),
    ]
