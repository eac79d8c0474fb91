"""Give launches a preset, runs an arm and trials a round."""

import django.db.models.deletion
from django.db import migrations, models

PRESETS = [
    ("", "runs"),
    ("guidance", "versions of guidance"),
    ("lift", "lift of a skill"),
    ("causes", "possible causes set apart"),
    ("confirm", "confirmation of an alert"),
    ("more", "further trials of compared runs"),
]
OBJECT = models.Value({}, models.JSONField())


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_one_count"), ("scenarios", "0002_one_of_each")]
    operations = [
        migrations.CreateModel(
            name="LaterMeasure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("n", models.PositiveIntegerField()),
                ("mean", models.FloatField()),
                ("m2", models.FloatField()),
                ("passed", models.PositiveIntegerField(null=True)),
                ("measure", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.measure")),
                ("run", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="later_measures", to="runs.run")),
                ("scenario", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="scenarios.scenario")),
            ],
            options={"abstract": False},
        ),
        migrations.RenameField("launch", "separates", "about"),
        migrations.AlterField(
            "launch",
            "about",
            models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="launches_about", to="runs.run"),
        ),
        migrations.AddField("launch", "preset", models.CharField(blank=True, choices=PRESETS, db_default="", default="", max_length=10)),
        migrations.AddField("launch", "stop", models.JSONField(db_default=OBJECT, default=dict)),
        migrations.AddField("run", "arm", models.CharField(blank=True, db_default="", default="", max_length=20)),
        migrations.AddField(
            "run",
            "reference",
            models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="compared", to="runs.run"),
        ),
        migrations.AddField("trial", "round", models.PositiveSmallIntegerField(db_default=0, default=0)),
    ]
