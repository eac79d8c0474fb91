"""The tables of the first release that can be upgraded."""

import datetime

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import runs.models.notification
from evalhub.teams.create_models import CreateModels

COLUMNS = ("facets", "commands", "outputs", "judge", "answer")
_new = ", ".join(f"new.{each}" for each in COLUMNS)
_old = ", ".join(f"old.{each}" for each in COLUMNS)
# ruff: noqa: S608 (constants)
_add = f"INSERT INTO runs_search (rowid, {', '.join(COLUMNS)}) VALUES (new.trial_id, {_new});"
_remove = (
    f"INSERT INTO runs_search (runs_search, rowid, {', '.join(COLUMNS)}) VALUES ('delete', old.trial_id, {_old});"
)
# An index beside its table, as SQLite's documentation of FTS5 describes it (External Content Tables).
SQLITE = (
    f"CREATE VIRTUAL TABLE runs_search USING fts5({', '.join(COLUMNS)}, content='runs_searchentry',"
    " content_rowid='trial_id', tokenize='unicode61 remove_diacritics 0')",
    f"CREATE TRIGGER runs_search_added AFTER INSERT ON runs_searchentry BEGIN {_add} END",
    f"CREATE TRIGGER runs_search_removed AFTER DELETE ON runs_searchentry BEGIN {_remove} END",
    f"CREATE TRIGGER runs_search_changed AFTER UPDATE ON runs_searchentry BEGIN {_remove} {_add} END",
)
SQLITE_BACK = tuple(f"DROP TRIGGER runs_search_{each}" for each in ("added", "removed", "changed")) + (
    "DROP TABLE runs_search",
)


def _vector(column, weight):
    # Words as FTS5 sees them: PostgreSQL's own parser would keep paths and file names whole.
    words = f"regexp_replace({column}, '[^[:alnum:]]+', ' ', 'g')"
    return f"setweight(to_tsvector('simple'::regconfig, {words}), '{weight}')"


_vectors = [_vector("facets || ' ' || answer", "D"), _vector("commands", "A"), _vector("outputs", "B")]
_vectors.append(_vector("judge", "C"))
POSTGRESQL = (
    "ALTER TABLE runs_searchentry ADD COLUMN vector tsvector"
    f" GENERATED ALWAYS AS ({' || '.join(_vectors)}) STORED",
    "CREATE INDEX runs_searchentry_vector ON runs_searchentry USING gin (vector)",
)
POSTGRESQL_BACK = ("ALTER TABLE runs_searchentry DROP COLUMN vector",)


def _run(schema_editor, sqlite, postgresql):
    for statement in sqlite if schema_editor.connection.vendor == "sqlite" else postgresql:
        schema_editor.execute(statement)


def add_index(apps, schema_editor):
    _run(schema_editor, SQLITE, POSTGRESQL)


def remove_index(apps, schema_editor):
    _run(schema_editor, SQLITE_BACK, POSTGRESQL_BACK)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('scenarios', '0006_suite_sources'),
        ('teams', '0011_diagnosis_thresholds'),
        ('auth', '__first__'),
    ]

    operations = [
        CreateModels(
            models=[
                migrations.CreateModel(
                    name='Launch',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('trigger', models.CharField(choices=[('web', 'Web'), ('api', 'Api'), ('cli', 'Cli'), ('import', 'Import'), ('confirm', 'Confirm')], max_length=10)),
                        ('request', models.JSONField(default=dict)),
                        ('priority', models.SmallIntegerField(choices=[(-1, 'low'), (0, 'normal'), (1, 'high')], db_default=0, default=0)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='launches', to='teams.project')),
                        ('separates', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='separations', to='runs.run')),
                    ],
                ),
                migrations.CreateModel(
                    name='Target',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('provider', models.CharField(max_length=40)),
                        ('definition', models.JSONField()),
                        ('base_folder', models.CharField(blank=True, max_length=500)),
                        ('workers', models.PositiveIntegerField(null=True)),
                        ('labels', models.JSONField(default=list)),
                        ('accepted', models.BooleanField(default=True)),
                        ('changed', models.DateTimeField(default=django.utils.timezone.now)),
                        ('changed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='teams.project')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='one_target_a_name')],
                    },
                ),
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
                        'constraints': [models.UniqueConstraint(fields=('target', 'sha256'), name='one_version_a_definition')],
                    },
                ),
                migrations.CreateModel(
                    name='Run',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('tool_version', models.CharField(blank=True, max_length=200)),
                        ('options', models.JSONField(default=dict)),
                        ('fingerprint', models.JSONField(default=dict)),
                        ('cache_key', models.CharField(blank=True, db_default='', default='', max_length=64)),
                        ('state', models.CharField(choices=[('queued', 'Queued'), ('preparing', 'Preparing'), ('running', 'Running'), ('finished', 'Finished'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                        ('outcome', models.CharField(blank=True, max_length=5)),
                        ('error', models.TextField(blank=True)),
                        ('warnings', models.JSONField(default=list)),
                        ('cancel_requested', models.BooleanField(default=False)),
                        ('token', models.CharField(blank=True, max_length=32)),
                        ('lease_until', models.FloatField(default=0.0)),
                        ('starts', models.PositiveIntegerField(db_default=0, default=0)),
                        ('put_back', models.PositiveSmallIntegerField(db_default=0, default=0)),
                        ('served', models.FloatField(default=0.0)),
                        ('concurrency', models.PositiveIntegerField(default=1)),
                        ('trials', models.PositiveIntegerField(default=0)),
                        ('open', models.PositiveIntegerField(default=0)),
                        ('passed', models.PositiveIntegerField(default=0)),
                        ('failed', models.PositiveIntegerField(default=0)),
                        ('errors', models.PositiveIntegerField(default=0)),
                        ('cancelled', models.PositiveIntegerField(default=0)),
                        ('cost_usd', models.FloatField(null=True)),
                        ('max_usd', models.FloatField(null=True)),
                        ('price_source', models.TextField(blank=True, db_default='', default='')),
                        ('tokens_in', models.BigIntegerField(default=0)),
                        ('tokens_out', models.BigIntegerField(default=0)),
                        ('verdict', models.CharField(blank=True, db_default='', default='', max_length=14)),
                        ('aa_scenarios', models.PositiveIntegerField(null=True)),
                        ('aa_differing', models.PositiveIntegerField(null=True)),
                        ('is_experiment', models.BooleanField(db_default=False, default=False)),
                        ('configuration_changed', models.BooleanField(db_default=False, default=False)),
                        ('branch', models.CharField(blank=True, max_length=200)),
                        ('commit', models.CharField(blank=True, max_length=64)),
                        ('tags', models.JSONField(default=list)),
                        ('trigger', models.CharField(choices=[('web', 'Web'), ('api', 'Api'), ('cli', 'Cli'), ('import', 'Import'), ('confirm', 'Confirm')], max_length=10)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('started', models.DateTimeField(null=True)),
                        ('finished', models.DateTimeField(null=True)),
                        ('baseline', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('guidance', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='scenarios.guidance')),
                        ('launch', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='runs.launch')),
                        ('more_of', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                        ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='teams.project')),
                        ('suite', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='scenarios.suite')),
                        ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='scenarios.suiteversion')),
                        ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.target')),
                        ('judge_versions', models.ManyToManyField(related_name='judged_runs', to='runs.targetversion')),
                        ('target_version', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.targetversion')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', '-id'], name='run_by_project'), models.Index(fields=['suite', 'target', '-id'], name='run_by_suite'), models.Index(fields=['project', 'created'], name='run_by_day'), models.Index(fields=['project', 'state'], name='run_by_state'), models.Index(fields=['project', 'verdict', '-id'], name='run_by_verdict'), models.Index(condition=models.Q(('cache_key', ''), _negated=True), fields=['cache_key'], name='run_by_cache_key'), models.Index(condition=models.Q(('more_of__isnull', False)), fields=['more_of'], name='run_more_of'), models.Index(condition=models.Q(('aa_scenarios__isnull', False)), fields=['suite', 'target'], name='run_aa'), models.Index(condition=models.Q(('state__in', ['queued', 'preparing', 'running'])), fields=['state'], name='run_open')],
                    },
                ),
                migrations.CreateModel(
                    name='Trial',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('index', models.PositiveIntegerField(default=0)),
                        ('position', models.PositiveIntegerField(default=0)),
                        ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                        ('outcome', models.CharField(blank=True, max_length=5)),
                        ('token', models.CharField(blank=True, max_length=32)),
                        ('lease_until', models.FloatField(default=0.0)),
                        ('starts', models.PositiveIntegerField(default=0)),
                        ('put_back', models.PositiveSmallIntegerField(db_default=0, default=0)),
                        ('worker', models.CharField(blank=True, db_default='', default='', max_length=200)),
                        ('activity', models.CharField(blank=True, db_default='', default='', max_length=200)),
                        ('calls_so_far', models.PositiveIntegerField(null=True)),
                        ('activity_exit_code', models.IntegerField(null=True)),
                        ('completed', models.BooleanField(null=True)),
                        ('timed_out', models.BooleanField(default=False)),
                        ('exit_code', models.IntegerField(null=True)),
                        ('composite', models.FloatField(null=True)),
                        ('seconds', models.FloatField(null=True)),
                        ('cost_usd', models.FloatField(null=True)),
                        ('tokens_in', models.BigIntegerField(null=True)),
                        ('tokens_out', models.BigIntegerField(null=True)),
                        ('tokens_estimated', models.BooleanField(default=False)),
                        ('error', models.TextField(blank=True)),
                        ('error_kind', models.CharField(blank=True, max_length=20)),
                        ('answer', models.TextField(blank=True)),
                        ('scores', models.JSONField(default=list)),
                        ('detail', models.JSONField(default=dict)),
                        ('started', models.DateTimeField(null=True)),
                        ('finished', models.DateTimeField(null=True)),
                        ('scenario', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='trials', to='scenarios.scenario')),
                        ('scenario_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='scenarios.scenarioversion')),
                        ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='trial_set', to='runs.run')),
                    ],
                    options={
                        'ordering': ['position', 'pk'],
                        'indexes': [models.Index(condition=models.Q(('state', 'queued')), fields=['run', 'position'], name='trial_queued'), models.Index(fields=['scenario', '-id'], name='trial_by_scenario'), models.Index(fields=['run', 'scenario', 'index', 'state', 'outcome'], name='trial_of_run'), models.Index(condition=models.Q(('state', 'running')), fields=['lease_until'], name='trial_running')],
                        'constraints': [models.UniqueConstraint(fields=('run', 'scenario_version', 'index'), name='one_trial_an_index')],
                    },
                ),
                migrations.CreateModel(
                    name='Worker',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=200, unique=True)),
                        ('seen', models.DateTimeField(default=django.utils.timezone.now)),
                        ('lanes', models.PositiveIntegerField(default=0)),
                        ('sandbox', models.CharField(blank=True, max_length=40)),
                        ('version', models.CharField(blank=True, max_length=40)),
                        ('problem', models.CharField(blank=True, db_default='', default='', max_length=500)),
                        ('free_bytes', models.BigIntegerField(null=True)),
                        ('store', models.CharField(blank=True, db_default='', default='', max_length=100)),
                        ('labels', models.JSONField(default=list)),
                    ],
                    options={
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='BatchAnswer',
                    fields=[
                        ('trial', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='batch_answer', serialize=False, to='runs.trial')),
                        ('data', models.BinaryField(default=b'')),
                        ('error', models.TextField(blank=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='SearchEntry',
                    fields=[
                        ('trial', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='search', serialize=False, to='runs.trial')),
                        ('facets', models.TextField(blank=True)),
                        ('commands', models.TextField(blank=True)),
                        ('outputs', models.TextField(blank=True)),
                        ('judge', models.TextField(blank=True)),
                        ('answer', models.TextField(blank=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='TranscriptRecord',
                    fields=[
                        ('trial', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='transcript', serialize=False, to='runs.trial')),
                        ('source', models.CharField(max_length=12)),
                        ('data', models.BinaryField()),
                        ('events', models.PositiveIntegerField(default=0)),
                    ],
                ),
                migrations.CreateModel(
                    name='Channel',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=80)),
                        ('kind', models.CharField(choices=[('email', 'E-mail'), ('webhook', 'Webhook'), ('slack', 'Slack')], max_length=10)),
                        ('recipients', models.JSONField(default=list)),
                        ('address', models.CharField(blank=True, max_length=500)),
                        ('secret', models.CharField(blank=True, max_length=200)),
                        ('events', models.JSONField(default=list)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='channels', to='teams.project')),
                    ],
                    options={
                        'ordering': ['name', 'pk'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='one_channel_a_name')],
                    },
                ),
                migrations.CreateModel(
                    name='CommandRecord',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('n', models.PositiveIntegerField()),
                        ('line', models.TextField()),
                        ('subcommand', models.CharField(blank=True, max_length=200)),
                        ('exit_code', models.IntegerField(null=True)),
                        ('failed', models.BooleanField(default=False)),
                        ('help', models.BooleanField(default=False)),
                        ('retry_of', models.PositiveIntegerField(null=True)),
                        ('event', models.PositiveIntegerField(null=True)),
                        ('failure', models.CharField(blank=True, db_default='', default='', max_length=20)),
                        ('trial', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='commands', to='runs.trial')),
                    ],
                    options={
                        'ordering': ['n'],
                        'constraints': [models.UniqueConstraint(fields=('trial', 'n'), name='one_command_a_number')],
                    },
                ),
                migrations.CreateModel(
                    name='GradeRequest',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('request', models.JSONField()),
                        ('started', models.DateTimeField(null=True)),
                        ('result', models.JSONField(null=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='grade_requests', to='teams.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['created'], name='grade_by_age')],
                    },
                ),
                migrations.CreateModel(
                    name='GroupAssignment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('polarity', models.CharField(max_length=10)),
                        ('wording', models.CharField(max_length=64)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('assignee', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='group_assignments', to='teams.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'polarity', 'wording'), name='one_assignee_a_wording')],
                    },
                ),
                migrations.CreateModel(
                    name='ImportedSession',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('session_id', models.CharField(max_length=200)),
                        ('sha256', models.CharField(max_length=64)),
                        ('suite', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.suite')),
                        ('trial', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.trial')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('suite', 'session_id'), name='one_session_an_id')],
                    },
                ),
                migrations.CreateModel(
                    name='JudgeCalibration',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('rubric', models.CharField(blank=True, max_length=12)),
                        ('passing', models.PositiveIntegerField(default=0)),
                        ('failing', models.PositiveIntegerField(default=0)),
                        ('lower', models.FloatField(default=0.0)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judge_calibrations', to='teams.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'model', 'rubric'), name='one_calibration_a_version')],
                    },
                ),
                migrations.CreateModel(
                    name='JudgingRecord',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('counts', models.BooleanField(default=True)),
                        ('name', models.CharField(default='judge', max_length=120)),
                        ('score', models.FloatField(null=True)),
                        ('passed', models.BooleanField(null=True)),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('rubric', models.CharField(blank=True, db_default='', default='', max_length=12)),
                        ('content', models.JSONField(default=dict)),
                        ('cost_usd', models.FloatField(null=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('trial', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judgings', to='runs.trial')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'indexes': [models.Index(condition=models.Q(('counts', False)), fields=['id', 'trial'], name='judged_again')],
                    },
                ),
                migrations.CreateModel(
                    name='Alert',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('state', models.CharField(choices=[('untriaged', 'Untriaged'), ('acknowledged', 'Acknowledged'), ('investigating', 'Investigating'), ('fixed', 'Fixed'), ('wont_fix', 'Wont Fix'), ('invalid', 'Invalid')], default='untriaged', max_length=14)),
                        ('note', models.TextField(blank=True)),
                        ('link', models.URLField(blank=True)),
                        ('due', models.DateField(null=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('first_triaged', models.DateTimeField(null=True)),
                        ('starred', models.BooleanField(db_default=False, default=False)),
                        ('tags', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                        ('revision', models.PositiveIntegerField(db_default=0, default=0)),
                        ('evidence', models.CharField(choices=[('suspected', 'Suspected'), ('confirming', 'Confirming'), ('confirmed', 'Confirmed'), ('not_confirmed', 'Not confirmed')], db_default='suspected', default='suspected', max_length=13)),
                        ('reason', models.TextField(blank=True, db_default='', default='')),
                        ('fresh', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                        ('assignee', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='teams.project')),
                        ('confirmation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='confirms', to='runs.launch')),
                        ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='alert', to='runs.run')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', 'state', '-id'], name='alert_by_state'), models.Index(condition=models.Q(('evidence', 'confirming')), fields=['evidence'], name='alert_confirming')],
                    },
                ),
                migrations.CreateModel(
                    name='Measure',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('layer', models.CharField(max_length=20)),
                        ('name', models.CharField(max_length=200)),
                        ('unit', models.CharField(blank=True, max_length=20)),
                        ('better', models.CharField(choices=[('higher', 'Higher'), ('lower', 'Lower'), ('none', 'None')], default='none', max_length=6)),
                    ],
                    options={
                        'ordering': ['layer', 'name'],
                        'constraints': [models.UniqueConstraint(fields=('layer', 'name'), name='one_measure_a_name')],
                    },
                ),
                migrations.CreateModel(
                    name='ModelPrice',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('model', models.CharField(max_length=200)),
                        ('input_per_million', models.FloatField(validators=[django.core.validators.MinValueValidator(0.0)])),
                        ('output_per_million', models.FloatField(validators=[django.core.validators.MinValueValidator(0.0)])),
                        ('since', models.DateField(default=datetime.date.today)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='model_prices', to='teams.project')),
                    ],
                    options={
                        'ordering': ['model', '-since'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'model', 'since'), name='one_price_a_day'), models.CheckConstraint(condition=models.Q(('input_per_million__gte', 0), ('output_per_million__gte', 0)), name='price_not_negative')],
                    },
                ),
                migrations.CreateModel(
                    name='Notification',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('event', models.CharField(choices=[('regression', 'Regression'), ('run_failed', 'Run failed'), ('assigned', 'Alert assigned'), ('digest', 'Weekly digest'), ('test', 'Test')], max_length=12)),
                        ('key', models.CharField(max_length=120, unique=True)),
                        ('content', models.JSONField(default=dict)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.alert')),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to='teams.project')),
                        ('to', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                    ],
                ),
                migrations.CreateModel(
                    name='Delivery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('uid', models.CharField(default=runs.models.notification.new_uid, max_length=40, unique=True)),
                        ('state', models.CharField(choices=[('queued', 'Queued'), ('sending', 'Sending'), ('sent', 'Sent'), ('failed', 'Failed'), ('skipped', 'Skipped')], default='queued', max_length=8)),
                        ('attempts', models.PositiveIntegerField(default=0)),
                        ('first_attempt', models.DateTimeField(null=True)),
                        ('next_attempt', models.DateTimeField(default=django.utils.timezone.now)),
                        ('token', models.CharField(blank=True, max_length=32)),
                        ('lease_until', models.DateTimeField(null=True)),
                        ('finished', models.DateTimeField(null=True)),
                        ('status', models.PositiveIntegerField(null=True)),
                        ('response', models.TextField(blank=True)),
                        ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='runs.channel')),
                        ('notification', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='runs.notification')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(condition=models.Q(('state__in', ['queued', 'sending'])), fields=['next_attempt'], name='delivery_open')],
                        'constraints': [models.UniqueConstraint(fields=('notification', 'channel'), name='one_delivery_a_channel')],
                    },
                ),
                migrations.CreateModel(
                    name='Overrule',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('layer', models.CharField(max_length=12)),
                        ('name', models.CharField(max_length=200)),
                        ('nth', models.PositiveIntegerField(default=0)),
                        ('criterion', models.CharField(blank=True, db_default='', default='', max_length=200)),
                        ('passed', models.BooleanField(null=True)),
                        ('value', models.FloatField(null=True)),
                        ('original', models.JSONField()),
                        ('reason', models.TextField()),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('undone', models.DateTimeField(null=True)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('trial', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='overrules', to='runs.trial')),
                        ('undone_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('undone', None)), fields=('trial', 'layer', 'name', 'nth', 'criterion'), name='one_overrule_a_score')],
                    },
                ),
                migrations.CreateModel(
                    name='Reassessment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('judge', 'Judge again'), ('grade', 'Grade again')], max_length=5)),
                        ('judge_model', models.CharField(blank=True, max_length=200)),
                        ('judge_sha256', models.CharField(blank=True, db_default='', default='', max_length=64)),
                        ('rubric', models.JSONField(null=True)),
                        ('max_usd', models.FloatField(null=True)),
                        ('cost_usd', models.FloatField(default=0.0)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('worker', models.CharField(blank=True, max_length=200)),
                        ('finished', models.DateTimeField(null=True)),
                        ('error', models.TextField(blank=True)),
                        ('adopted', models.DateTimeField(null=True)),
                        ('adopted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reassessments', to='runs.run')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(condition=models.Q(('finished', None)), fields=['created'], name='reassessment_unfinished')],
                    },
                ),
                migrations.CreateModel(
                    name='ReassessedTrial',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('scores', models.JSONField(default=list)),
                        ('outcome', models.CharField(blank=True, max_length=5)),
                        ('note', models.TextField(blank=True)),
                        ('graded_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='scenarios.scenarioversion')),
                        ('judgings', models.ManyToManyField(related_name='+', to='runs.judgingrecord')),
                        ('trial', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reassessed', to='runs.trial')),
                        ('reassessment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='runs.reassessment')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('reassessment', 'trial'), name='one_reassessment_a_trial')],
                    },
                ),
                migrations.CreateModel(
                    name='Resolution',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('right', models.CharField(choices=[('gate_weak', 'Gate too weak'), ('judge_fooled', 'Judge fooled'), ('both_fine', 'Both fine')], max_length=12)),
                        ('note', models.TextField(blank=True)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('trial', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='resolution', to='runs.trial')),
                    ],
                ),
                migrations.CreateModel(
                    name='Review',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('polarity', models.CharField(max_length=10)),
                        ('position', models.PositiveIntegerField()),
                        ('word', models.CharField(choices=[('agree', 'Agree'), ('disagree', 'Disagree'), ('unclear', 'Unclear')], max_length=10)),
                        ('note', models.TextField(blank=True)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('judging', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reviews', to='runs.judgingrecord')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('judging', 'polarity', 'position', 'by'), name='one_word_each')],
                    },
                ),
                migrations.CreateModel(
                    name='ReviewRound',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('rubric', models.CharField(blank=True, max_length=12)),
                        ('is_stratified', models.BooleanField(default=False)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_rounds', to='teams.project')),
                        ('suite', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.suite')),
                    ],
                    options={
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='RoundItem',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('position', models.PositiveIntegerField()),
                        ('weight', models.FloatField()),
                        ('judge_passed', models.BooleanField()),
                        ('judge_criteria', models.JSONField(default=dict)),
                        ('passed', models.BooleanField(null=True)),
                        ('criteria', models.JSONField(default=dict)),
                        ('note', models.TextField(blank=True)),
                        ('at', models.DateTimeField(null=True)),
                        ('assignee', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('judging', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='round_items', to='runs.judgingrecord')),
                        ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='runs.reviewround')),
                    ],
                    options={
                        'ordering': ['position'],
                        'constraints': [models.UniqueConstraint(fields=('round', 'judging'), name='one_item_a_judging')],
                    },
                ),
                migrations.CreateModel(
                    name='RunDigest',
                    fields=[
                        ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='digest', serialize=False, to='runs.run')),
                        ('content', models.BinaryField()),
                    ],
                ),
                migrations.CreateModel(
                    name='ProviderBatch',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('external_id', models.CharField(blank=True, max_length=200)),
                        ('state', models.CharField(max_length=20)),
                        ('token', models.CharField(blank=True, max_length=32)),
                        ('detail', models.JSONField(default=dict)),
                        ('submitted', models.DateTimeField(default=django.utils.timezone.now)),
                        ('looks', models.PositiveIntegerField(default=0)),
                        ('next_look', models.FloatField(default=0.0)),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='runs.run')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run',), name='one_batch_a_run')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagConfusion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('subcommand', models.CharField(max_length=200)),
                        ('kind', models.CharField(max_length=20)),
                        ('typed', models.CharField(blank=True, max_length=200)),
                        ('meant', models.CharField(blank=True, max_length=200)),
                        ('calls', models.PositiveIntegerField(default=0)),
                        ('trials', models.PositiveIntegerField(default=0)),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='flag_confusions', to='runs.run')),
                    ],
                ),
                migrations.CreateModel(
                    name='DiagnosisReview',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('pattern', models.CharField(max_length=60)),
                        ('is_right', models.BooleanField()),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='diagnosis_reviews', to='runs.run')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run', 'pattern'), name='one_review_a_finding')],
                    },
                ),
                migrations.CreateModel(
                    name='Change',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('verdict', models.CharField(choices=[('regressed', 'Regressed'), ('improved', 'Improved'), ('equivalent', 'Equivalent'), ('no_evidence', 'No evidence of change'), ('too_little', 'Too little data'), ('not_comparable', 'Not comparable')], max_length=14)),
                        ('before', models.FloatField(null=True)),
                        ('after', models.FloatField(null=True)),
                        ('detail', models.JSONField(default=dict)),
                        ('scenario', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.scenario')),
                        ('measure', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.measure')),
                        ('baseline', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='runs.run')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run', 'measure', 'scenario'), name='one_change_each')],
                    },
                ),
                migrations.CreateModel(
                    name='RunMeasure',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('n', models.PositiveIntegerField()),
                        ('mean', models.FloatField()),
                        ('m2', models.FloatField()),
                        ('passed', models.PositiveIntegerField(null=True)),
                        ('measure', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.measure')),
                        ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='measures', to='runs.run')),
                        ('scenario', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.scenario')),
                    ],
                    options={
                        'indexes': [models.Index(condition=models.Q(('scenario', None)), fields=['measure', 'run'], name='rollup_by_measure')],
                        'constraints': [models.UniqueConstraint(fields=('run', 'scenario', 'measure'), name='one_rollup_each')],
                    },
                ),
                migrations.CreateModel(
                    name='RunSlot',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('n', models.PositiveIntegerField()),
                        ('token', models.CharField(blank=True, max_length=32)),
                        ('lease_until', models.FloatField(default=0.0)),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='runs.run')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run', 'n'), name='one_lane_a_number')],
                    },
                ),
                migrations.CreateModel(
                    name='SavedView',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=80)),
                        ('query', models.CharField(blank=True, max_length=4000)),
                        ('is_default', models.BooleanField(default=False)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to='teams.project')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'owner', 'name'), name='one_own_view_a_name'), models.UniqueConstraint(condition=models.Q(('owner', None)), fields=('project', 'name'), name='one_team_view_a_name')],
                    },
                ),
                migrations.CreateModel(
                    name='SubcommandMeasure',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('subcommand', models.CharField(max_length=200)),
                        ('calls', models.PositiveIntegerField(default=0)),
                        ('errors', models.PositiveIntegerField(default=0)),
                        ('first_tries', models.PositiveIntegerField(default=0)),
                        ('helps', models.PositiveIntegerField(default=0)),
                        ('retries_after_failure', models.PositiveIntegerField(default=0)),
                        ('unknown', models.PositiveIntegerField(default=0)),
                        ('helps_before', models.PositiveIntegerField(db_default=0, default=0)),
                        ('tries', models.JSONField(db_default={}, default=dict)),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='subcommands', to='runs.run')),
                        ('scenario', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.scenario')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run', 'scenario', 'subcommand'), name='one_subcommand_each')],
                    },
                ),
                migrations.CreateModel(
                    name='SuiteProof',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('worker', models.CharField(blank=True, max_length=200)),
                        ('finished', models.DateTimeField(null=True)),
                        ('max_usd', models.FloatField(null=True)),
                        ('cost_usd', models.FloatField(db_default=0.0, default=0.0)),
                        ('error', models.TextField(blank=True)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='proofs', to='scenarios.suiteversion')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(condition=models.Q(('finished', None)), fields=['created'], name='proof_unfinished')],
                    },
                ),
                migrations.CreateModel(
                    name='ScenarioProof',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('solution', models.CharField(blank=True, max_length=64)),
                        ('seal', models.CharField(choices=[('proved', 'proved'), ('unproved', 'unproved'), ('passes_without_agent', 'passes without an agent'), ('solution_fails', 'solution fails')], max_length=20)),
                        ('reason', models.TextField(blank=True)),
                        ('is_failure', models.BooleanField(default=False)),
                        ('held', models.JSONField(default=list)),
                        ('scenario_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.scenarioversion')),
                        ('proof', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scenarios', to='runs.suiteproof')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('proof', 'scenario_version'), name='one_proof_a_scenario')],
                    },
                ),
                migrations.CreateModel(
                    name='Baseline',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('branch', models.CharField(blank=True, max_length=200)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('suite', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='baselines', to='scenarios.suite')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='baseline_of', to='runs.run')),
                        ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='baselines', to='runs.target')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('suite', 'target', 'branch'), name='one_baseline_each')],
                    },
                ),
                migrations.CreateModel(
                    name='TargetCheck',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('asked', models.DateTimeField(default=django.utils.timezone.now)),
                        ('at', models.DateTimeField(null=True)),
                        ('worker', models.CharField(blank=True, max_length=200)),
                        ('available', models.BooleanField(null=True)),
                        ('sentence', models.TextField(blank=True)),
                        ('version', models.CharField(blank=True, max_length=200)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='runs.target')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(condition=models.Q(('at', None)), fields=['asked'], name='check_unanswered')],
                    },
                ),
                migrations.CreateModel(
                    name='TargetSlot',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('n', models.PositiveIntegerField()),
                        ('token', models.CharField(blank=True, max_length=32)),
                        ('lease_until', models.FloatField(default=0.0)),
                        ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='runs.target')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('target', 'n'), name='one_place_a_number')],
                    },
                ),
                migrations.CreateModel(
                    name='TargetTry',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('definition', models.JSONField()),
                        ('base_folder', models.CharField(blank=True, max_length=500)),
                        ('labels', models.JSONField(default=list)),
                        ('prompt', models.TextField()),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('worker', models.CharField(blank=True, max_length=200)),
                        ('result', models.JSONField(null=True)),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='target_tries', to='teams.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['created'], name='try_by_age')],
                    },
                ),
                migrations.CreateModel(
                    name='ToolHelp',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('binary', models.CharField(max_length=200)),
                        ('tool_version', models.CharField(blank=True, max_length=200)),
                        ('subcommand', models.CharField(blank=True, max_length=200)),
                        ('text', models.TextField(blank=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='teams.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'binary', 'tool_version', 'subcommand'), name='one_help_page_each')],
                    },
                ),
                migrations.CreateModel(
                    name='TrialAttempt',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('state', models.CharField(max_length=10)),
                        ('error', models.TextField(blank=True)),
                        ('error_kind', models.CharField(blank=True, max_length=20)),
                        ('worker', models.CharField(blank=True, max_length=200)),
                        ('seconds', models.FloatField(null=True)),
                        ('exit_code', models.IntegerField(null=True)),
                        ('cost_usd', models.FloatField(null=True)),
                        ('detail', models.JSONField(default=dict)),
                        ('started', models.DateTimeField(null=True)),
                        ('finished', models.DateTimeField(null=True)),
                        ('trial', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='runs.trial')),
                    ],
                    options={
                        'ordering': ['number'],
                        'constraints': [models.UniqueConstraint(fields=('trial', 'number'), name='one_attempt_a_number')],
                    },
                ),
                migrations.CreateModel(
                    name='Artifact',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=60)),
                        ('sha256', models.CharField(max_length=64)),
                        ('size', models.BigIntegerField()),
                        ('media_type', models.CharField(default='text/plain', max_length=60)),
                        ('trial', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='runs.trial')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('trial', 'name'), name='one_artifact_a_name')],
                    },
                ),
            ],
        ),
        migrations.RunPython(add_index, remove_index),
    ]
