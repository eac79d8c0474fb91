"""Definitions of targets are kept as runs were prepared with them."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0012_trial_at_work'),
    ]

    operations = [
        migrations.CreateModel(
            name='TargetVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sha256', models.CharField(max_length=64)),
                ('definition', models.JSONField()),
                ('created', models.DateTimeField(default=django.utils.timezone.now)),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='runs.target')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.AddField(
            model_name='run',
            name='target_version',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.targetversion'),
        ),
        migrations.AddConstraint(
            model_name='targetversion',
            constraint=models.UniqueConstraint(fields=('target', 'sha256'), name='one_version_a_definition'),
        ),
    ]
