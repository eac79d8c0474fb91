from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("teams", "0012_confirmation_limit")]

    operations = [
        migrations.AddField(
            "project",
            "notify_when",
            models.CharField(
                choices=[("confirmed", "when confirmed"), ("at_once", "at once, suspected or confirmed")],
                db_default="confirmed",
                default="confirmed",
                help_text="When alerts are notified of.",
                max_length=9,
            ),
        ),
        migrations.AddField(
            "project",
            "alert_dearer",
            models.BooleanField(
                db_default=True,
                default=True,
                help_text="Raise an alert where trials cost more than before.",
            ),
        ),
        migrations.AddField(
            "project",
            "alert_slower",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="Raise an alert where trials take longer than before.",
            ),
        ),
        migrations.RemoveField("project", "confirm_alerts"),
        migrations.RemoveField("project", "confirm_trials"),
        migrations.RemoveField("project", "confirm_usd"),
    ]
