from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0061_plain_alerts")]

    operations = [migrations.DeleteModel("GroupAssignment")]
