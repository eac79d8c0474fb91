"""`manage.py backup`: a copy that can be put back."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from runs.warehouse.artifacts import keep
from tests.builders import make_project
from tests.commands.calling import call


@pytest.fixture(autouse=True)
def data(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    settings.ARTIFACTS_DIR = settings.DATA_DIR / "artifacts"
    settings.DATA_DIR.mkdir()
    (settings.DATA_DIR / "secret_key").write_text("the secret")
    return settings.DATA_DIR


def backup(folder) -> str:
    out = StringIO()
    call_command("backup", str(folder), stdout=out)
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="The database is a file on SQLite only.")
def test_the_copy_has_the_rows_of_the_moment(tmp_path):
    make_project("tools")
    backup(tmp_path / "safe")
    make_project("later")
    with closing(sqlite3.connect(tmp_path / "safe/evalhub.sqlite3")) as copy:
        assert copy.execute("SELECT slug FROM teams_project").fetchall() == [("tools",)]


@pytest.mark.django_db(transaction=True)
def test_files_are_copied_once(tmp_path):
    kept = keep("transcript", b"raw")
    assert "1 new file (" in backup(tmp_path / "safe")
    assert "0 new files" in backup(tmp_path / "safe")
    assert (tmp_path / "safe/artifacts" / kept.sha256[:2] / kept.sha256).read_bytes() == b"raw"


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_just_being_written_is_left_out(tmp_path, settings):
    kept = keep("transcript", b"raw")
    (settings.ARTIFACTS_DIR / kept.sha256[:2] / "tmpab12").write_bytes(b"ra")
    assert "1 new file (" in backup(tmp_path / "safe")
    assert [path.name for path in (tmp_path / "safe/artifacts").glob("*/*")] == [kept.sha256]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="The database is a file on SQLite only.")
def test_a_full_disk_is_reported(tmp_path):
    err = StringIO()
    # What the command itself writes begins a new log, which is short.
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = Path(str(connection.settings_dict["NAME"])).stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, before[1]))
    try:
        with pytest.raises(SystemExit) as stopped:
            call_command("backup", str(tmp_path / "safe"), stderr=err)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert stopped.value.code == 2
    assert "the backup failed: " in err.getvalue()
    assert not (tmp_path / "safe/evalhub.sqlite3").exists()


@pytest.mark.django_db(transaction=True)
def test_the_secret_is_for_its_owner_only(tmp_path):
    backup(tmp_path / "safe")
    secret = tmp_path / "safe/secret_key"
    assert secret.read_text() == "the secret"
    assert secret.stat().st_mode & 0o077 == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="There is a server on PostgreSQL only.")
def test_a_database_server_is_dumped_before_files_are_copied(tmp_path):
    make_project("tools")
    assert f"Copied the database to {tmp_path / 'safe/evalhub.dump'}." in backup(tmp_path / "safe")
    listed = subprocess.run(
        ["pg_restore", "--list", str(tmp_path / "safe/evalhub.dump")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "TABLE DATA public teams_project" in listed.stdout


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="There is a server on PostgreSQL only.")
def test_nothing_is_copied_without_the_dump_program(tmp_path, monkeypatch):
    keep("transcript", b"raw")
    monkeypatch.setenv("PATH", str(tmp_path))
    err = StringIO()
    with pytest.raises(SystemExit):
        call_command("backup", str(tmp_path / "safe"), stderr=err)
    assert "pg_dump is not installed here, so nothing was copied." in err.getvalue()
    assert not (tmp_path / "safe/artifacts").exists()


@pytest.mark.django_db(transaction=True)
def test_it_refuses_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    err = StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("backup", str(tmp_path / "file"), stderr=err)
    assert stopped.value.code == 2
    assert "the backup failed" in err.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_folder_without_a_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    ended = call("backup", "")
    assert (ended.code, ended.err.strip()) == (
        2,
        "The folder is empty. Name one, or use '.' for the current folder.",
    )
    assert sorted(tmp_path.iterdir()) == before
