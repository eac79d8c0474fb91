"""Kept files in a folder and in an S3-compatible bucket: the same from every door."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.test import Client

from evalhub import environment
from runs.models import Artifact, Trial
from runs.results.files.artifacts import (
    StoreAway,
    StoredFileUnavailable,
    keep_content,
    list_folders,
    name_of,
    open_file_store,
    open_kept,
    open_stored,
    store_id,
    store_id_if_readable,
)
from runs.results.files.retention import prune_files
from tests.builders import make_member, make_project, make_run, make_suite, make_trial
from tests.services.object_store import bucket, served, silent_store, use_bucket
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

pytestmark = pytest.mark.one_database

BUCKET = "kept-files"


@pytest.fixture(scope="module")
def s3_options() -> Iterator[str]:
    with bucket(BUCKET) as options:
        yield options


@pytest.fixture(params=["folder", "s3"])
def any_store(request, settings, tmp_path, monkeypatch) -> str:
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"
    if request.param == "s3":
        options = request.getfixturevalue("s3_options")
        use_bucket(settings, monkeypatch, f"s3://{BUCKET}/{tmp_path.name}{options}")
    return request.param


def trial_with(name: str, content: bytes) -> Trial:
    trial = make_trial(make_run(make_suite(make_project())), outcome="pass")
    Artifact.objects.create(trial=trial, **vars(keep_content(name, content)))
    return trial


def page_client(trial: Trial) -> Client:
    client = Client()
    client.force_login(make_member(trial.run.project, "author"))
    return client


@pytest.mark.django_db(transaction=True)
def test_make_bucket_makes_it_once(settings, monkeypatch, s3_options, capsys):
    use_bucket(settings, monkeypatch, f"s3://made-by-command{s3_options}")
    for made in (True, False):
        call_command("make_bucket", "--json")
        assert json.loads(capsys.readouterr().out)["made"] is made
    assert keep_content("transcript", b"into the new bucket").size == 19


@pytest.mark.django_db(transaction=True)
def test_make_bucket_needs_a_bucket(capsys):
    with pytest.raises(SystemExit):
        call_command("make_bucket")
    assert "EVALHUB_STORE names no bucket." in capsys.readouterr().err


def test_what_is_kept_is_read_again(any_store):
    kept = keep_content("transcript", b"raw \x00 bytes")
    with open_stored(kept.sha256) as file:
        assert file.read() == b"raw \x00 bytes"


def test_the_same_content_is_stored_once(any_store, tmp_path):
    first, second = keep_content("transcript", b"same"), keep_content("events", b"same")
    assert first.sha256 == second.sha256
    assert open_file_store().listdir(first.sha256[:2])[1] == [first.sha256]


@pytest.mark.django_db
def test_a_download_sends_the_stored_bytes(any_store):
    trial = trial_with("transcript", b"what the agent printed")
    answer = page_client(trial).get(f"/p/{trial.run.project.slug}/trials/{trial.pk}/artifacts/transcript/")
    assert b"".join(answer.streaming_content) == b"what the agent printed"


@pytest.mark.django_db
def test_a_file_of_a_kept_workspace_is_sent(any_store):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("notes.txt")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"hello"))
    trial = trial_with("workspace", packed.getvalue())
    answer = page_client(trial).get(f"/p/{trial.run.project.slug}/trials/{trial.pk}/files/0/")
    assert answer.content == b"hello"


@pytest.mark.django_db
def test_a_missing_file_is_reported_as_not_on_this_server(any_store):
    trial = trial_with("transcript", b"soon gone")
    open_file_store().delete(name_of(trial.artifacts.get().sha256))
    answer = page_client(trial).get(f"/p/{trial.run.project.slug}/trials/{trial.pk}/artifacts/transcript/")
    assert answer.status_code == 404
    assert "Its file is not on this server." in answer.content.decode()


def test_a_store_that_is_away_is_a_sentence(settings, monkeypatch, tmp_path):
    use_bucket(settings, monkeypatch, f"s3://{BUCKET}?endpoint=http://127.0.0.1:9&region=us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(
        StoredFileUnavailable, match=r"The file store cannot be read: .* Check EVALHUB_STORE\."
    ):
        open_kept("ab" * 32)


@pytest.fixture
def archive_class(settings, monkeypatch, tmp_path, s3_options) -> None:
    """A bucket that moves files to an archive, from which they can't be read at once."""
    use_bucket(settings, monkeypatch, f"s3://{BUCKET}/{tmp_path.name}{s3_options}")
    artifacts = settings.STORAGES["artifacts"]
    options = {**artifacts["OPTIONS"], "object_parameters": {"StorageClass": "GLACIER"}}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {**artifacts, "OPTIONS": options}}


@pytest.mark.django_db
def test_an_archived_file_cannot_be_downloaded(archive_class):
    trial = trial_with("transcript", b"what the agent printed")
    answer = page_client(trial).get(f"/p/{trial.run.project.slug}/trials/{trial.pk}/artifacts/transcript/")
    assert answer.status_code == 404
    assert "The file store cannot be read: An error occurred (InvalidObjectState)" in answer.content.decode()


def test_an_archived_file_cannot_be_read(archive_class):
    kept = keep_content("transcript", b"what the agent printed")
    with pytest.raises(StoredFileUnavailable, match=r"InvalidObjectState"), open_stored(kept.sha256):
        pass


@pytest.mark.slow
def test_a_store_that_never_answers_is_given_up(settings, monkeypatch):
    with silent_store() as options:
        use_bucket(settings, monkeypatch, f"s3://{BUCKET}{options}")
        begun = time.monotonic()
        assert store_id_if_readable() == ""
        assert time.monotonic() - begun < 30


def test_a_folder_needs_no_client_of_buckets():
    code = "import sys; from evalhub import environment; environment.file_store('NONE'); print('botocore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.django_db
def test_files_without_a_row_are_pruned(any_store, monkeypatch):
    trial = trial_with("transcript", b"named by a row")
    orphan = keep_content("events", b"named by nobody")
    assert prune_files(dry_run=False).files == 0
    later = time.time() + 2 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert prune_files(dry_run=False).files == 1
    assert not open_file_store().exists(name_of(orphan.sha256))
    assert open_file_store().exists(name_of(trial.artifacts.get().sha256))


@pytest.mark.django_db(transaction=True)
def test_a_backup_copies_files_of_every_store(any_store, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    kept = keep_content("transcript", b"to be copied")
    call_command("backup", str(tmp_path / "safe"))
    assert (tmp_path / "safe/artifacts" / name_of(kept.sha256)).read_bytes() == b"to be copied"


def test_nothing_is_left_of_a_write_that_fails(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"
    settings.ARTIFACTS_DIR.mkdir()

    class Broken(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        open_file_store().save("ab/cd", Broken())
    assert [path for path in Path(settings.ARTIFACTS_DIR).rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("address", ["gs://bucket", "s3://", "s3://bucket?colour=red"])
def test_an_address_that_is_not_a_store_is_refused(monkeypatch, address):
    monkeypatch.setenv("EVALHUB_STORE", address)
    with pytest.raises(ImproperlyConfigured, match=r"Write s3://bucket/prefix"):
        environment.file_store("EVALHUB_STORE")


def test_a_stores_id_is_written_once(any_store):
    assert store_id() == store_id() != ""


def test_writers_that_start_at_once_agree_on_the_id(any_store):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: store_id(), range(8)))
    assert len(found) == 1


def test_two_folders_have_two_ids(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "one"
    first = store_id()
    settings.ARTIFACTS_DIR = tmp_path / "two"
    assert store_id() != first


def test_two_prefixes_of_a_bucket_have_two_ids(settings, monkeypatch, s3_options, tmp_path):
    use_bucket(settings, monkeypatch, f"s3://{BUCKET}/{tmp_path.name}/one{s3_options}")
    first = store_id()
    use_bucket(settings, monkeypatch, f"s3://{BUCKET}/{tmp_path.name}/two{s3_options}")
    assert store_id() != first


def test_a_store_that_cannot_be_read_has_no_id(settings, tmp_path):
    (tmp_path / "file").write_text("")
    settings.ARTIFACTS_DIR = tmp_path / "file"
    assert store_id_if_readable() == ""


def test_the_id_is_neither_backed_up_nor_pruned(any_store):
    known = store_id()
    assert list_folders() == []
    assert store_id() == known


class Unconditional(BaseHTTPRequestHandler):
    """An S3-compatible store that cannot write conditionally."""

    kept: ClassVar[dict[str, bytes]] = {}

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["If-None-Match"]:
            self.answer(501, b"<Error><Code>NotImplemented</Code><Message>If-None-Match</Message></Error>")
        else:
            self.kept[self.path] = content
            self.answer(200, b"")

    def do_GET(self) -> None:
        content = self.kept.get(self.path)
        self.answer(404 if content is None else 200, content or b"")

    do_HEAD = do_GET

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Mon, 23 Nov 2026 12:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Print nothing."""


class Busy(Unconditional):
    """An S3-compatible store that is overloaded at first, for more requests than its client repeats."""

    refused: ClassVar[int] = 0

    def answer(self, status: int, body: bytes) -> None:
        Busy.refused += 1
        super().answer(503 if Busy.refused <= 3 else status, body)


def test_a_store_without_conditional_writes_has_an_id(settings, monkeypatch):
    with served(Unconditional) as options:
        use_bucket(settings, monkeypatch, f"s3://{BUCKET}/plain{options}")
        assert store_id() == store_id() != ""


class Removed(Unconditional):
    """An S3-compatible store whose files are removed after one look at them."""

    def do_HEAD(self) -> None:
        self.answer(200, b"")

    def do_GET(self) -> None:
        self.answer(404, b"<Error><Code>NoSuchKey</Code><Message>There is no such key.</Message></Error>")


def test_a_file_that_is_removed_while_it_is_opened_is_not_on_this_server(settings, monkeypatch):
    with served(Removed) as options:
        use_bucket(settings, monkeypatch, f"s3://{BUCKET}{options}")
        with pytest.raises(StoredFileUnavailable, match=r"Its file is not on this server\."):
            open_kept("ab" * 32)


def test_a_store_that_is_busy_is_asked_again(settings, monkeypatch):
    with served(Busy) as options:
        use_bucket(settings, monkeypatch, f"s3://{BUCKET}/busy{options}")
        kept = keep_content("transcript", b"kept in the end")
    assert f"/{BUCKET}/busy/{name_of(kept.sha256)}" in Busy.kept
    assert Busy.refused > 3


@pytest.mark.slow
def test_a_store_that_takes_no_files_is_a_sentence_without_addresses(settings, monkeypatch, s3_options):
    advice = "Check EVALHUB_STORE; evalhub continues automatically when files can be stored again."
    use_bucket(settings, monkeypatch, f"s3://{BUCKET}?endpoint=http://127.0.0.1:9&region=us-east-1")
    with pytest.raises(StoreAway) as away:
        keep_content("transcript", b"nowhere")
    assert str(away.value) == f"The file store can't be reached: EndpointConnectionError. {advice}"
    assert away.value.remains() == str(away.value)

    use_bucket(settings, monkeypatch, f"s3://no-such-bucket{s3_options}")
    assert away.value.remains() == f"The file store refuses files: NoSuchBucket. {advice}"
    use_bucket(settings, monkeypatch, f"s3://{BUCKET}/again{s3_options}")
    assert away.value.remains() == ""
