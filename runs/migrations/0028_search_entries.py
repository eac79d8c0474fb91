import django.db.models.deletion
from django.db import migrations, models

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

    dependencies = [
        ('runs', '0027_proofs'),
    ]

    operations = [
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
        migrations.RunPython(add_index, remove_index),
    ]
