"""Drop what a run's page computes when it is shown."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_one_launch")]

    operations = [migrations.DeleteModel(name="RunDigest")]
