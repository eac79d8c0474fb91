"""Verdicts of runs over their measures; `manage.py compare_again` computes those of stored runs."""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def rename_same(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Call an unchanged scenario or run what it is now called."""
    apps.get_model("runs", "Change").objects.filter(verdict="same").update(verdict="no_evidence")



class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0024_launch_priority'),
        ('scenarios', '0001_initial'),
        ('teams', '0006_smallest_effects'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='configuration_changed',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='run',
            name='is_experiment',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='run',
            name='verdict',
            field=models.CharField(blank=True, db_default='', default='', max_length=14),
        ),
        migrations.AlterField(
            model_name='change',
            name='verdict',
            field=models.CharField(choices=[('regressed', 'Regressed'), ('improved', 'Improved'), ('equivalent', 'Equivalent'), ('no_evidence', 'No evidence of change'), ('too_little', 'Too little data'), ('not_comparable', 'Not comparable')], max_length=14),
        ),
        migrations.RunPython(rename_same, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['project', 'verdict', '-id'], name='run_by_verdict'),
        ),
    ]
