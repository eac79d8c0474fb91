"""`manage.py backup`: a copy that can be put back."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from evalhub.web.example_agent import free_port
from runs.results.files.artifacts import keep_content
from tests.builders import make_project
from tests.commands.calling import call
from tests.requirements import missing
from tests.services.servers import NotHere, PostgresServer, postgres_server

ROOT = Path(__file__).resolve().parents[2]


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
    kept = keep_content("transcript", b"raw")
    assert "1 new file (" in backup(tmp_path / "safe")
    assert "0 new files" in backup(tmp_path / "safe")
    assert (tmp_path / "safe/artifacts" / kept.sha256[:2] / kept.sha256).read_bytes() == b"raw"


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_just_being_written_is_left_out(tmp_path, settings):
    kept = keep_content("transcript", b"raw")
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
def test_a_backup_that_breaks_off_leaves_the_earlier_one(tmp_path):
    backup(tmp_path / "safe")
    database = next((tmp_path / "safe").glob("evalhub.*"))
    earlier = database.read_bytes()
    make_project("later")
    keep_content("workspace", bytes(64_000_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (63_000_000, before[1]))
    try:
        with pytest.raises(SystemExit):
            backup(tmp_path / "safe")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in (tmp_path / "safe").glob("evalhub.*")] == [database.name]
    assert database.read_bytes() == earlier
    backup(tmp_path / "safe")
    assert database.read_bytes() != earlier


@pytest.mark.django_db(transaction=True)
def test_the_secret_is_in_it_for_its_owner_only(tmp_path, settings):
    # As on a server, where no file of the data directory holds it.
    (settings.DATA_DIR / "secret_key").unlink()
    backup(tmp_path / "safe")
    secret = tmp_path / "safe/secret_key"
    assert secret.read_text() == settings.SECRET_KEY
    assert secret.stat().st_mode & 0o077 == 0


@pytest.fixture
def fresh_cluster() -> Iterator[PostgresServer]:
    """Give a server on which nobody but its superuser is known."""
    try:
        with postgres_server(superuser="postgres") as server:
            yield server
    except NotHere as error:
        missing("postgres", str(error))


def documented_restore() -> str:
    """Return the commands of the page that restore on PostgreSQL."""
    page = (ROOT / "docs/operations.md").read_text()
    return page.split("On PostgreSQL, as a superuser")[1].split("```sh\n")[1].split("```")[0]


@pytest.mark.own_servers
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="There is a server on PostgreSQL only.")
def test_the_documented_commands_restore_into_a_fresh_cluster(tmp_path, fresh_cluster):
    make_project("tools")
    kept = keep_content("transcript", b"raw")
    safe = tmp_path / "safe"
    assert f"Copied the database to {safe / 'evalhub.dump'}." in backup(safe)
    make_project("later")
    env = {**os.environ, "PGHOST": str(fresh_cluster.folder), "PGUSER": "postgres"}
    done = subprocess.run(
        ["sh", "-e", "-c", documented_restore().replace("FOLDER", str(safe))],
        env=env,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # What is left of the page: files and the key.
    data = tmp_path / "restored"
    shutil.copytree(safe / "artifacts", data / "artifacts")
    restored = {
        **os.environ,
        "EVALHUB_DATA": str(data),
        "DATABASE_URL": f"postgresql://evalhub@/evalhub?host={fresh_cluster.folder}",
        "EVALHUB_BROKER_URL": "redis://127.0.0.1:1/0",
        "EVALHUB_SECRET_KEY": (safe / "secret_key").read_text(),
        "DJANGO_SETTINGS_MODULE": "evalhub.settings",
    }
    for words in (["migrate", "-v0"], ["create_user", "ada", "--role", "admin", "--project", "tools"]):
        ended = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=restored,
            input="correct horse battery staple\n",
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr + ended.stdout
    assert (data / "artifacts" / kept.sha256[:2] / kept.sha256).read_bytes() == b"raw"
    with psycopg.connect(restored["DATABASE_URL"]) as asked:
        assert asked.execute("SELECT slug FROM teams_project").fetchall() == [("tools",)]
        assert asked.execute("SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = 'evalhub'").fetchone() == (False, False)  # fmt: skip
        owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
        assert asked.execute(owners).fetchall() == [("evalhub",)]


@pytest.fixture(scope="module")
def server_without_tls() -> Iterator[PostgresServer]:
    try:
        with postgres_server(free_port()) as server:
            yield server
    except NotHere as error:
        missing("postgres", str(error))


def backup_of(server: PostgresServer, options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Back up a server that is reached by TCP; a first `pg_dump` writes down its arguments."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "pg_dump").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\nPATH=/usr/bin:/bin exec pg_dump "$@"\n'
    )
    (programs / "pg_dump").chmod(0o755)
    return subprocess.run(
        [sys.executable, "manage.py", "backup", str(folder / "safe")],
        cwd=ROOT,
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "EVALHUB_DATA": str(folder / "data"),
            "EVALHUB_SECRET_KEY": "s" * 50,
            "EVALHUB_BROKER_URL": "redis://127.0.0.1:1/0",
            "DATABASE_URL": f"postgresql://evalhub:hunter2@127.0.0.1:{server.port}/postgres?{options}",
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.own_servers
def test_a_server_without_the_tls_that_the_address_asks_for_is_not_dumped(tmp_path, server_without_tls):
    ended = backup_of(server_without_tls, "sslmode=require", tmp_path)
    assert ended.returncode == 2
    assert "pg_dump failed, so nothing was copied: " in ended.stderr
    assert "server does not support SSL, but SSL was required" in ended.stderr
    assert list((tmp_path / "safe").iterdir()) == []


@pytest.mark.own_servers
def test_options_of_the_address_are_passed_on_without_the_password(tmp_path, server_without_tls):
    options = "sslmode=prefer&connect_timeout=7&target_session_attrs=read-write&prepare_threshold=0"
    ended = backup_of(server_without_tls, options, tmp_path)
    assert ended.returncode == 0, ended.stderr
    arguments = (tmp_path / "arguments").read_text()
    for option in ("sslmode=prefer", "connect_timeout=7", "target_session_attrs=read-write", "user=evalhub"):
        assert option in arguments
    assert "hunter2" not in arguments


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="There is a server on PostgreSQL only.")
def test_nothing_is_copied_without_the_dump_program(tmp_path, monkeypatch):
    keep_content("transcript", b"raw")
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
