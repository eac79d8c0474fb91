
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0031_causes_prices_and_aa'),
        ('scenarios', '0004_release_rule'),
        ('teams', '0007_confirmation_budget'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='more_of',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('more_of__isnull', False)), fields=['more_of'], name='run_more_of'),
        ),
    ]
