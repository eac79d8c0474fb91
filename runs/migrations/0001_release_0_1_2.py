"""The tables of 0.1.2."""

import datetime

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import runs.models.notification
import runs.models.run
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

    replaces = [
        ('runs', '0001_squashed_0042'),
        ('runs', '0001_squashed_0064'),
        ('runs', '0043_guidance_comparisons'),
        ('runs', '0044_reassessment_leases'),
        ('runs', '0045_worker_capacity'),
        ('runs', '0046_proof_leases'),
        ('runs', '0047_grading_leases'),
        ('runs', '0048_followed_runs'),
        ('runs', '0049_ends_and_counting'),
        ('runs', '0050_held_launches'),
        ('runs', '0051_cached_prices'),
        ('runs', '0052_lease_checks'),
        ('runs', '0053_metric_counters'),
        ('runs', '0054_artifacts_by_content'),
        ('runs', '0055_proofs_against_cheating'),
        ('runs', '0056_small_changes'),
        ('runs', '0057_calibrations_by_strata'),
        ('runs', '0058_imports_are_no_aa_pairs'),
        ('runs', '0059_lines'),
        ('runs', '0060_looks'),
        ('runs', '0061_plain_alerts'),
        ('runs', '0062_no_group_assignments'),
        ('runs', '0063_jobs'),
        ('runs', '0064_open_jobs'),
        ('runs', '0065_alerts_after_changes'),
        ('runs', '0066_annotations'),
        ('runs', '0067_no_verdicts_and_judges'),
        ('runs', '0068_proofs_without_cheating'),
        ('runs', '0069_retests'),
        ('runs', '0070_alerts_of_each_kind'),
        ('runs', '0071_pass_rates'),
        ('runs', '0072_as_expected'),
        ('runs', '0073_one_alert_a_kind'),
    ]

    initial = True

    dependencies = [
        ('auth', '__first__'),
        ('scenarios', '0001_release_0_1_2'),
        ('teams', '0001_release_0_1_2'),
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
                        ('held_by', models.CharField(blank=True, db_default='', default='', max_length=250)),
                        ('held_until', models.FloatField(db_default=0.0, default=0.0)),
                    ],
                    options={
                        'indexes': [models.Index(condition=models.Q(('held_by', ''), _negated=True), fields=['held_by'], name='launch_held')],
                        'constraints': [],
                    },
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
                        'indexes': [],
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
                        'indexes': [],
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
                        ('measured', models.DateTimeField(null=True)),
                        ('followed_up', models.BooleanField(db_default=True, default=True)),
                        ('counting', models.JSONField(db_default=models.Value({}, models.JSONField()), default=runs.models.run.nothing_counted)),
                        ('recounted', models.PositiveSmallIntegerField(db_default=0, default=2)),
                        ('cost_notes', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                        ('repriced', models.PositiveSmallIntegerField(db_default=0, default=2)),
                        ('old_side', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                        ('looks', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                        ('is_unchecked', models.BooleanField(db_default=False, default=False)),
                        ('not_started', models.TextField(blank=True, db_default='', default='')),
                        ('unjudged', models.PositiveIntegerField(db_default=0, default=0)),
                        ('retest_usd', models.FloatField(db_default=0.0, default=0.0)),
                        ('retests', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                        ('pass_rate', models.FloatField(null=True)),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', '-id'], name='run_by_project'), models.Index(fields=['suite', 'target', '-id'], name='run_by_suite'), models.Index(fields=['project', 'created'], name='run_by_day'), models.Index(fields=['project', 'state'], name='run_by_state'), models.Index(fields=['project', 'verdict', '-id'], name='run_by_verdict'), models.Index(condition=models.Q(('cache_key', ''), _negated=True), fields=['cache_key'], name='run_by_cache_key'), models.Index(condition=models.Q(('more_of__isnull', False)), fields=['more_of'], name='run_more_of'), models.Index(condition=models.Q(('state__in', ['queued', 'preparing', 'running'])), fields=['state'], name='run_open'), models.Index(condition=models.Q(('followed_up', False)), fields=['finished'], name='run_to_follow')],
                        'constraints': [],
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
                        ('is_retest', models.BooleanField(db_default=False, default=False)),
                    ],
                    options={
                        'ordering': ['position', 'pk'],
                        'indexes': [models.Index(condition=models.Q(('state', 'queued')), fields=['run', 'position'], name='trial_queued'), models.Index(fields=['scenario', '-id'], name='trial_by_scenario'), models.Index(condition=models.Q(('state', 'running')), fields=['lease_until'], name='trial_running'), models.Index(fields=['run', 'scenario', 'index', 'state', 'outcome', 'is_retest'], name='trial_of_run')],
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
                        ('capacity', models.PositiveIntegerField(db_default=1, default=1)),
                        ('has_judge', models.BooleanField(db_default=False, default=False)),
                    ],
                    options={
                        'ordering': ['name'],
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='BatchAnswer',
                    fields=[
                        ('trial', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='batch_answer', serialize=False, to='runs.trial')),
                        ('data', models.BinaryField(default=b'')),
                        ('error', models.TextField(blank=True)),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
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
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='TranscriptRecord',
                    fields=[
                        ('trial', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='transcript', serialize=False, to='runs.trial')),
                        ('source', models.CharField(max_length=12)),
                        ('data', models.BinaryField()),
                        ('events', models.PositiveIntegerField(default=0)),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
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
                        'indexes': [],
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
                        ('trial', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='commands', to='runs.trial')),
                        ('at_least', models.BooleanField(db_default=False, default=False)),
                        ('end', models.CharField(blank=True, db_default='', default='', max_length=10)),
                        ('seconds', models.FloatField(null=True)),
                    ],
                    options={
                        'ordering': ['n'],
                        'constraints': [models.UniqueConstraint(fields=('trial', 'n'), name='one_command_a_number')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='GradeRequest',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('request', models.JSONField()),
                        ('result', models.JSONField(null=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='grade_requests', to='teams.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['created'], name='grade_by_age')],
                        'constraints': [],
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
                        'indexes': [],
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
                        'indexes': [],
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
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='Alert',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('state', models.CharField(choices=[('untriaged', 'Untriaged'), ('acknowledged', 'Acknowledged'), ('investigating', 'Investigating'), ('fixed', 'Fixed'), ('wont_fix', "Won't fix"), ('invalid', 'Not a regression')], default='untriaged', max_length=14)),
                        ('note', models.TextField(blank=True)),
                        ('link', models.URLField(blank=True)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('first_triaged', models.DateTimeField(null=True)),
                        ('evidence', models.CharField(choices=[('suspected', 'Suspected'), ('confirmed', 'Confirmed'), ('not_confirmed', 'Not confirmed')], db_default='suspected', default='suspected', max_length=13)),
                        ('reason', models.TextField(blank=True, db_default='', default='')),
                        ('assignee', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='teams.project')),
                        ('confirmation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='confirms', to='runs.launch')),
                        ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='runs.run')),
                        ('decided', models.DateTimeField(null=True)),
                        ('drift', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                        ('kind', models.CharField(choices=[('regression', 'Regression'), ('drift', 'Drift'), ('after_change', 'Worse after a change'), ('dearer', 'Dearer'), ('slower', 'Slower')], db_default='regression', default='regression', max_length=12)),
                        ('named', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', 'state', '-id'], name='alert_by_state')],
                        'constraints': [models.UniqueConstraint(fields=('run', 'kind'), name='one_alert_a_kind')],
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
                        'indexes': [],
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
                        ('cache_read_per_million', models.FloatField(null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                        ('cache_write_1h_per_million', models.FloatField(null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                        ('cache_write_per_million', models.FloatField(null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                        ('reasoning_per_million', models.FloatField(null=True, validators=[django.core.validators.MinValueValidator(0.0)])),
                    ],
                    options={
                        'ordering': ['model', '-since'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'model', 'since'), name='one_price_a_day'), models.CheckConstraint(condition=models.Q(('input_per_million__gte', 0), ('output_per_million__gte', 0)), name='price_not_negative')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Notification',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('event', models.CharField(choices=[('regression', 'Regression'), ('after_change', 'Worse after a change of guidance or model'), ('run_failed', 'Run failed'), ('assigned', 'Alert assigned'), ('digest', 'Weekly digest'), ('test', 'Test')], max_length=12)),
                        ('key', models.CharField(max_length=120, unique=True)),
                        ('content', models.JSONField(default=dict)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.alert')),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to='teams.project')),
                        ('to', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
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
                        'indexes': [],
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
                        'constraints': [],
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
                        ('reassessment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='runs.reassessment')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('reassessment', 'trial'), name='one_reassessment_a_trial')],
                        'indexes': [],
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
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
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
                        'indexes': [],
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
                        'indexes': [],
                        'constraints': [],
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
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='RunDigest',
                    fields=[
                        ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='digest', serialize=False, to='runs.run')),
                        ('content', models.BinaryField()),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
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
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='runs.run')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run',), name='one_batch_a_run')],
                        'indexes': [],
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
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
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
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Change',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('verdict', models.CharField(choices=[('regressed', 'Regressed'), ('improved', 'Improved'), ('small_change', 'Small change'), ('equivalent', 'Equivalent'), ('as_expected', 'As expected'), ('no_evidence', 'No evidence of change'), ('too_little', 'Too little data'), ('not_comparable', 'Not comparable')], max_length=14)),
                        ('before', models.FloatField(null=True)),
                        ('after', models.FloatField(null=True)),
                        ('detail', models.JSONField(default=dict)),
                        ('scenario', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.scenario')),
                        ('measure', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.measure')),
                        ('baseline', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                        ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='runs.run')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run', 'measure', 'scenario'), name='one_change_each')],
                        'indexes': [],
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
                        ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='runs.run')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run', 'n'), name='one_lane_a_number')],
                        'indexes': [],
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
                        'indexes': [],
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
                        ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='subcommands', to='runs.run')),
                        ('scenario', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.scenario')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('run', 'scenario', 'subcommand'), name='one_subcommand_each')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='SuiteProof',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
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
                        'constraints': [],
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
                        ('changed', models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('proof', 'scenario_version'), name='one_proof_a_scenario')],
                        'indexes': [],
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
                        'indexes': [],
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
                        'constraints': [],
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
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='TargetTry',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('definition', models.JSONField()),
                        ('base_folder', models.CharField(blank=True, max_length=500)),
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
                        'constraints': [],
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
                        'indexes': [],
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
                        'indexes': [],
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
                        ('trial', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='runs.trial')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('trial', 'name'), name='one_artifact_a_name')],
                        'indexes': [models.Index(fields=['sha256'], name='artifact_by_content')],
                    },
                ),
                migrations.CreateModel(
                    name='GuidanceComparison',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('basis', models.CharField(max_length=64)),
                        ('content', models.BinaryField()),
                        ('after', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.guidance')),
                        ('before', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scenarios.guidance')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('before', 'after', 'basis'), name='one_comparison_a_basis')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='LeaseCheck',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('checked', models.FloatField()),
                        ('resumed', models.FloatField(default=0.0)),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='MetricCounter',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('sample', models.CharField(max_length=200, unique=True)),
                        ('counted', models.FloatField(default=0.0)),
                        ('lowered', models.FloatField(default=0.0)),
                    ],
                    options={
                        'indexes': [],
                        'constraints': [],
                    },
                ),
                migrations.CreateModel(
                    name='Job',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('proof', 'Proof'), ('reassessment', 'Reassessment'), ('grading', 'Grading'), ('check', 'Check'), ('try', 'Try'), ('batch', 'Batch'), ('channel', 'Channel')], max_length=12)),
                        ('subject', models.PositiveBigIntegerField()),
                        ('labels', models.JSONField(default=list)),
                        ('due', models.FloatField(default=0.0)),
                        ('expires', models.DateTimeField(null=True)),
                        ('attempts', models.PositiveIntegerField(default=0)),
                        ('worker', models.CharField(blank=True, max_length=200)),
                        ('token', models.CharField(blank=True, max_length=32)),
                        ('lease_until', models.FloatField(default=0.0)),
                        ('launch', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.launch')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('kind', 'subject'), name='one_job_a_subject')],
                        'indexes': [],
                    },
                ),
                migrations.CreateModel(
                    name='Annotation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('day', models.DateField()),
                        ('text', models.CharField(max_length=200)),
                        ('created', models.DateTimeField(default=django.utils.timezone.now)),
                        ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='annotations', to='teams.project')),
                        ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='annotations', to='runs.run')),
                        ('suite', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='annotations', to='scenarios.suite')),
                    ],
                    options={
                        'ordering': ['-day', '-pk'],
                        'indexes': [],
                        'constraints': [],
                    },
                ),
            ],
        ),
        migrations.RunPython(add_index, remove_index),
    ]
