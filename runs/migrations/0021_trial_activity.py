from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0020_runs_of_the_home")]

    operations = [
        migrations.RenameField("trial", "doing", "activity"),
        migrations.RenameField("trial", "doing_exit", "activity_exit_code"),
    ]
