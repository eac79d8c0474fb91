"""The tables of 0.1.2."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from evalhub.teams.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('scenarios', '0001_initial'),
        ('scenarios', '0001_squashed_0006'),
        ('scenarios', '0002_tool_files'),
        ('scenarios', '0003_solutions'),
        ('scenarios', '0004_release_rule'),
        ('scenarios', '0005_guidance_laid'),
        ('scenarios', '0006_suite_sources'),
        ('scenarios', '0007_guidance_left_out'),
        ('scenarios', '0008_suite_retests'),
    ]

    initial = True

    dependencies = [
        ('auth', '__first__'),
        ('teams', '0001_release_0_1_2'),
    ]

    operations = [
        CreateModels(
            models=[
                migrations.CreateModel(
                    name='Scenario',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=200)),
                        ('retired', models.BooleanField(default=False)),
                        ('suite', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scenarios', to='scenarios.suite')),
                    ],
                    options={
                        'ordering': ['key'],
                        'constraints': [models.UniqueConstraint(fields=('suite', 'key'), name='one_scenario_a_key')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Fixture',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('sha256', models.CharField(max_length=64)),
                        ('archive', models.BinaryField()),
                        ('files', models.JSONField(default=list)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='fixtures', to='teams.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'sha256'), name='one_fixture_a_content')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Rubric',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('sha256', models.CharField(max_length=64)),
                        ('name', models.CharField(max_length=200)),
                        ('content', models.JSONField()),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rubrics', to='teams.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'sha256'), name='one_rubric_a_content')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='ScenarioVersion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('sha256', models.CharField(max_length=64)),
                        ('content', models.JSONField()),
                        ('task_hash', models.CharField(max_length=64)),
                        ('command_pattern', models.TextField(blank=True, default='')),
                        ('gates_hash', models.CharField(max_length=64)),
                        ('judge_hash', models.CharField(blank=True, max_length=64)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('fixture', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='scenarios.fixture')),
                        ('rubric', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='scenarios.rubric')),
                        ('scenario', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='scenarios.scenario')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('scenario', 'sha256'), name='one_scenario_version_a_content')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Suite',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('slug', models.SlugField(max_length=120)),
                        ('name', models.CharField(max_length=200)),
                        ('format', models.CharField(max_length=30)),
                        ('release_k', models.PositiveSmallIntegerField(null=True)),
                        ('release_threshold', models.FloatField(null=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='suites', to='teams.project')),
                        ('retests', models.BooleanField(db_default=True, default=True)),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'slug'), name='one_suite_a_slug')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Guidance',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('sha256', models.CharField(max_length=64)),
                        ('name', models.CharField(blank=True, max_length=120)),
                        ('files', models.JSONField(default=list)),
                        ('laid_file', models.CharField(blank=True, db_default='', default='', max_length=120)),
                        ('laid_path', models.CharField(blank=True, db_default='', default='', max_length=1000)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('suite', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='guidance', to='scenarios.suite')),
                        ('left_out', models.JSONField(db_default=[], default=list)),
                    ],
                    options={
                        'ordering': ['-number'],
                        'constraints': [models.UniqueConstraint(fields=('suite', 'sha256'), name='one_guidance_a_content'), models.UniqueConstraint(fields=('suite', 'number'), name='one_guidance_a_number')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='SuiteEntry',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('position', models.PositiveIntegerField()),
                        ('scenario_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='scenarios.scenarioversion')),
                        ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='scenarios.suiteversion')),
                    ],
                    options={
                        'ordering': ['position'],
                        'constraints': [models.UniqueConstraint(fields=('suite_version', 'scenario_version'), name='each_scenario_once')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='SuiteVersion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('sha256', models.CharField(max_length=64)),
                        ('targets_text', models.TextField(blank=True)),
                        ('targets_file', models.CharField(blank=True, max_length=300)),
                        ('solutions', models.JSONField(default=dict)),
                        ('source_name', models.CharField(blank=True, db_default='', default='', max_length=300)),
                        ('config', models.JSONField(default=dict)),
                        ('lints', models.JSONField(default=list)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('guidance', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='scenarios.guidance')),
                        ('scenario_versions', models.ManyToManyField(related_name='suite_versions', through='scenarios.SuiteEntry', to='scenarios.scenarioversion')),
                        ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='scenarios.fixture')),
                        ('suite', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='scenarios.suite')),
                    ],
                    options={
                        'ordering': ['-number'],
                        'constraints': [models.UniqueConstraint(fields=('suite', 'sha256'), name='one_version_a_content'), models.UniqueConstraint(fields=('suite', 'number'), name='one_version_a_number')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Upload',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('guidance', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='scenarios.guidance')),
                        ('suite', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='scenarios.suite')),
                        ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='scenarios.suiteversion')),
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
