"""The tables of 0.1.2."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from evalhub.teams.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('teams', '0001_initial'),
        ('teams', '0001_squashed_0011'),
        ('teams', '0002_sign_in_failures'),
        ('teams', '0003_seed_manifest'),
        ('teams', '0004_password_guesses'),
        ('teams', '0005_caps_and_priorities'),
        ('teams', '0006_smallest_effects'),
        ('teams', '0007_confirmation_budget'),
        ('teams', '0008_month_budget'),
        ('teams', '0009_calibrated_judges'),
        ('teams', '0010_invitation'),
        ('teams', '0011_diagnosis_thresholds'),
        ('teams', '0012_confirmation_limit'),
        ('teams', '0013_notify_when'),
    ]

    initial = True

    dependencies = [
        ('auth', '__first__'),
    ]

    operations = [
        CreateModels(
            models=[
                migrations.CreateModel(
                    name='Project',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('slug', models.SlugField(unique=True)),
                        ('name', models.CharField(max_length=120)),
                        ('command_pattern', models.CharField(blank=True, help_text="Finds the tool's commands where a scenario does not say how.", max_length=500)),
                        ('judge', models.CharField(blank=True, help_text='Target or model that judges by default.', max_length=200)),
                        ('smallest_effect', models.FloatField(default=0.05, help_text='Smallest change of a rate that counts, 0 to 1.')),
                        ('smallest_effects', models.JSONField(blank=True, default=dict, help_text='Smallest changes that count, by measure, where they differ.')),
                        ('most_trials', models.PositiveIntegerField(blank=True, help_text='Most trials at once over all runs of the project; empty for no limit.', null=True, validators=[django.core.validators.MinValueValidator(1)])),
                        ('priority', models.SmallIntegerField(choices=[(-1, 'low'), (0, 'normal'), (1, 'high')], db_default=0, default=0, help_text='Projects with a higher priority get free lanes first.')),
                        ('seed_manifest', models.JSONField(blank=True, help_text='Values of {{seed:…}} where neither a run nor a suite has its own.', null=True)),
                        ('month_usd', models.FloatField(blank=True, help_text='Budget of a calendar month in US dollars; empty for no limit.', null=True)),
                        ('judge_labels', models.PositiveIntegerField(db_default=30, default=30, help_text='Passing and failing labels that a calibrated judge needs, each.', validators=[django.core.validators.MinValueValidator(1)])),
                        ('judge_rate', models.FloatField(db_default=0.7, default=0.7, help_text='Lowest end of both 95 % intervals of a calibrated judge, 0 to 1.')),
                        ('only_calibrated_judges', models.BooleanField(db_default=False, default=False, help_text='An uncalibrated judge informs and does not decide.')),
                        ('diagnosis_thresholds', models.JSONField(blank=True, db_default={}, default=dict, help_text='Thresholds of the diagnosis that the project sets, by name.')),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('notify_when', models.CharField(choices=[('confirmed', 'when confirmed'), ('at_once', 'at once, suspected or confirmed')], db_default='confirmed', default='confirmed', help_text='When alerts are notified of.', max_length=9)),
                        ('alert_dearer', models.BooleanField(db_default=True, default=True, help_text='Raise an alert where trials cost more than before.')),
                        ('alert_slower', models.BooleanField(db_default=False, default=False, help_text='Raise an alert where trials take longer than before.')),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='ApiToken',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=80)),
                        ('prefix', models.CharField(max_length=12)),
                        ('sha256', models.CharField(max_length=64, unique=True)),
                        ('role', models.CharField(choices=[('viewer', 'Viewer'), ('runner', 'Runner'), ('author', 'Author'), ('admin', 'Admin')], default='viewer', max_length=10)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('expires', models.DateTimeField(blank=True, null=True)),
                        ('last_used', models.DateTimeField(blank=True, null=True)),
                        ('revoked', models.DateTimeField(blank=True, null=True)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='teams.project')),
                    ],
                    options={
                        'ordering': ['name', 'pk'],
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='SignInLink',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('sha256', models.CharField(max_length=64, unique=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('used', models.DateTimeField(null=True)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='Membership',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('role', models.CharField(choices=[('viewer', 'Viewer'), ('runner', 'Runner'), ('author', 'Author'), ('admin', 'Admin')], default='viewer', max_length=10)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='teams.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'user'), name='one_role_each')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='AuditEvent',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('action', models.CharField(max_length=60)),
                        ('subject', models.CharField(blank=True, max_length=200)),
                        ('detail', models.JSONField(default=dict)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='audit_events', to='teams.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', '-id'], name='audit_by_project')],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='PasswordGuesses',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=64, unique=True)),
                        ('count', models.PositiveIntegerField(default=0)),
                        ('last', models.DateTimeField(db_index=True)),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='Invitation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('role', models.CharField(choices=[('viewer', 'Viewer'), ('runner', 'Runner'), ('author', 'Author'), ('admin', 'Admin')], default='viewer', max_length=10)),
                        ('email', models.EmailField(blank=True, max_length=254)),
                        ('sha256', models.CharField(max_length=64, unique=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('used', models.DateTimeField(null=True)),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to=settings.AUTH_USER_MODEL)),
                        ('used_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='accepted_invitations', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='teams.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [],
                        'constraints': [],
                    },
                ),
            ],
        ),
    ]
