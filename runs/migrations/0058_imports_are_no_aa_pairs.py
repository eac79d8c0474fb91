"""Imported runs don't say which tool and guidance they had, so they are no A/A pairs."""

from django.db import migrations


def forget_pairs(apps, schema_editor):
    pairs = apps.get_model('runs', 'Run').objects.filter(aa_scenarios__isnull=False, fingerprint__provider='imported')
    pairs.update(aa_scenarios=None, aa_differing=None)


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0057_calibrations_by_strata'),
    ]

    operations = [
        migrations.RunPython(forget_pairs, migrations.RunPython.noop, elidable=True),
    ]
