"""Foreign keys that other indexes begin with lose their own: it was written for nothing, and PostgreSQL chose it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0010_changes_of_whole_runs'),
        ('teams', '0003_seed_manifest'),
    ]

    operations = [
        migrations.AlterField(
            model_name='run',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='teams.project'),
        ),
        migrations.AlterField(
            model_name='runmeasure',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='measures', to='runs.run'),
        ),
    ]
