from django.db import migrations, models

EVIDENCE = [("suspected", "Suspected"), ("confirmed", "Confirmed"), ("not_confirmed", "Not confirmed")]


class Migration(migrations.Migration):
    # By itself: PostgreSQL alters no table in a transaction that changed a row of it twice.
    dependencies = [("runs", "0072_as_expected")]

    operations = [
        migrations.RemoveIndex("alert", "alert_confirming"),
        migrations.AlterField(
            "alert",
            "evidence",
            models.CharField(choices=EVIDENCE, db_default="suspected", default="suspected", max_length=13),
        ),
        migrations.RemoveField("alert", "fresh"),
        migrations.AddConstraint(
            "alert", models.UniqueConstraint(fields=["run", "kind"], name="one_alert_a_kind")
        ),
        migrations.RemoveIndex("run", "run_aa"),
        migrations.RemoveField("run", "aa_scenarios"),
        migrations.RemoveField("run", "aa_differing"),
    ]
