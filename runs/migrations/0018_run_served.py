"""Lanes choose the run that was served longest ago; nobody asks any more when lanes were last called for."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0017_disk_full")]

    operations = [migrations.RenameField(model_name="run", old_name="woken", new_name="served")]
