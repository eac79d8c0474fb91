import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0026_notifications"),
        ("scenarios", "0003_solutions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SuiteProof",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("worker", models.CharField(blank=True, max_length=200)),
                ("finished", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "suite_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="proofs",
                        to="scenarios.suiteversion",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="ScenarioProof",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("solution", models.CharField(blank=True, max_length=64)),
                (
                    "seal",
                    models.CharField(
                        choices=[
                            ("proved", "proved"),
                            ("unproved", "unproved"),
                            ("passes_without_agent", "passes without an agent"),
                            ("solution_fails", "solution fails"),
                        ],
                        max_length=20,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("is_failure", models.BooleanField(default=False)),
                ("held", models.JSONField(default=list)),
                (
                    "scenario_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="scenarios.scenarioversion",
                    ),
                ),
                (
                    "proof",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scenarios",
                        to="runs.suiteproof",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddIndex(
            model_name="suiteproof",
            index=models.Index(
                condition=models.Q(("finished", None)), fields=["created"], name="proof_unfinished"
            ),
        ),
        migrations.AddConstraint(
            model_name="scenarioproof",
            constraint=models.UniqueConstraint(
                fields=("proof", "scenario_version"), name="one_proof_a_scenario"
            ),
        ),
    ]
