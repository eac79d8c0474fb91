from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0064_open_jobs")]

    operations = [
        migrations.AlterField(
            "alert",
            "kind",
            models.CharField(
                choices=[
                    ("regression", "Regression"),
                    ("drift", "Drift"),
                    ("after_change", "Worse after a change"),
                ],
                db_default="regression",
                default="regression",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            "alert",
            "state",
            models.CharField(
                choices=[
                    ("untriaged", "Untriaged"),
                    ("acknowledged", "Acknowledged"),
                    ("investigating", "Investigating"),
                    ("fixed", "Fixed"),
                    ("wont_fix", "Won't fix"),
                    ("invalid", "Not a regression"),
                ],
                default="untriaged",
                max_length=14,
            ),
        ),
        migrations.AlterField(
            "notification",
            "event",
            models.CharField(
                choices=[
                    ("regression", "Regression"),
                    ("after_change", "Worse after a change of guidance or model"),
                    ("run_failed", "Run failed"),
                    ("assigned", "Alert assigned"),
                    ("digest", "Weekly digest"),
                    ("test", "Test"),
                ],
                max_length=12,
            ),
        ),
    ]
