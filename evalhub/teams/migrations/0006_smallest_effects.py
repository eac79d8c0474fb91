
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('teams', '0005_caps_and_priorities'),
    ]

    operations = [
        migrations.AddField(
            model_name='project',
            name='smallest_effects',
            field=models.JSONField(blank=True, default=dict, help_text='Smallest changes that count, by measure, where they differ.'),
        ),
    ]
