from __future__ import annotations

from django.db import migrations, models


def read_names(apps, schema_editor):
    """Take the file and the path from names such as "good.md over AGENTS.md"."""
    for guidance in apps.get_model("scenarios", "Guidance").objects.filter(name__contains=" over "):
        file, _, path = guidance.name.rpartition(" over ")
        if any(each["path"] == path for each in guidance.files):
            guidance.laid_file, guidance.laid_path = file, path
            guidance.save(update_fields=["laid_file", "laid_path"])


class Migration(migrations.Migration):

    dependencies = [
        ('scenarios', '0004_release_rule'),
    ]

    operations = [
        migrations.AddField(
            model_name='guidance',
            name='laid_file',
            field=models.CharField(blank=True, db_default='', default='', max_length=120),
        ),
        migrations.AddField(
            model_name='guidance',
            name='laid_path',
            field=models.CharField(blank=True, db_default='', default='', max_length=1000),
        ),
        migrations.RunPython(read_names, migrations.RunPython.noop),
    ]
