"""Name two times of a run by what happens then."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_one_of_each")]

    operations = [
        migrations.RenameField(model_name="run", old_name="measured", new_name="rollups_at"),
        migrations.RenameField(model_name="run", old_name="served", new_name="last_lane_at"),
    ]
