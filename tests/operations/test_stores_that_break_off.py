"""A bucket whose answers break off, or whose files are gone when they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from runs.models import Worker
from runs.results.files.artifacts import (
    StoredFileUnavailable,
    keep_content,
    name_of,
    open_kept,
    store_id,
    store_id_if_readable,
    store_problems,
)
from tests.commands.calling import call
from tests.services.object_store import served, use_bucket

SHA256 = "ab" * 32
BROKEN = "The file store cannot be read: 10 read, but total bytes expected is 100000. Check EVALHUB_STORE."


class Listed(BaseHTTPRequestHandler):
    """An S3-compatible store with one file."""

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "prefix" not in query:
            self.send_file()
        elif query["prefix"] == ["files/"]:
            self.send_list("<CommonPrefixes><Prefix>files/ab/</Prefix></CommonPrefixes>")
        else:
            self.send_list(f"<Contents><Key>files/ab/{SHA256}</Key></Contents>")

    def do_HEAD(self) -> None:
        self.begin(200, 100_000)

    def send_file(self) -> None:
        """Break off in the middle of the file."""
        self.begin(200, 100_000)
        self.wfile.write(b"half of it")
        self.close_connection = True

    def send_list(self, rows: str) -> None:
        body = f"<ListBucketResult>{rows}</ListBucketResult>".encode()
        self.begin(200, len(body))
        self.wfile.write(body)

    def begin(self, status: int, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Mon, 23 Nov 2020 12:00:00 GMT")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Print nothing."""


@pytest.fixture
def breaking_off(settings, monkeypatch, tmp_path) -> Iterator[None]:
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    with served(Listed) as options:
        use_bucket(settings, monkeypatch, f"s3://kept/files{options}")
        yield


def test_a_download_that_breaks_off_is_a_sentence(breaking_off):
    with pytest.raises(StoredFileUnavailable, match=f"^{re.escape(BROKEN)}$"):
        open_kept(SHA256)


@pytest.mark.django_db
def test_the_id_of_a_store_that_breaks_off_is_not_known(breaking_off):
    Worker.objects.create(name="eval-1", store="other")
    assert store_id_if_readable() == ""
    assert store_problems() == [BROKEN]


@pytest.mark.django_db(transaction=True)
def test_a_backup_from_a_store_that_breaks_off_fails_and_leaves_no_part(breaking_off, tmp_path):
    ended = call("backup", str(tmp_path / "safe"))
    assert ended.code == 2
    assert "the files could not be copied: " in ended.err
    assert [path for path in (tmp_path / "safe/artifacts").rglob("*") if path.is_file()] == []


class Removed(Listed):
    """A store whose file is removed after it was listed."""

    def do_HEAD(self) -> None:
        self.begin(404, 0)


@pytest.mark.django_db
def test_a_file_that_goes_after_it_was_listed_is_not_pruned_twice(settings, monkeypatch):
    with served(Removed) as options:
        use_bucket(settings, monkeypatch, f"s3://kept/files{options}")
        ended = call("prune", "--json")
    assert (ended.code, json.loads(ended.out)["files"]) == (0, 0)


@pytest.mark.django_db
def test_a_file_that_gets_its_name_during_a_prune_is_left_alone(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    (tmp_path / "ab").mkdir()
    # Listed, and gone when it is read, like a file under its temporary name.
    (tmp_path / "ab/tmp1234").symlink_to("gone")
    ended = call("prune", "--json")
    assert (ended.code, json.loads(ended.out)["files"]) == (0, 0)


class Refusing(Listed):
    """A store that refuses everything but its list."""

    def do_HEAD(self) -> None:
        self.begin(403, 0)


@pytest.mark.django_db
def test_a_store_that_refuses_is_a_sentence_of_prune(settings, monkeypatch):
    with served(Refusing) as options:
        use_bucket(settings, monkeypatch, f"s3://kept/files{options}")
        ended = call("prune")
    assert ended.code == 2
    assert ended.err.startswith("The unused files could not be deleted: An error occurred (403)")


class Counting(Listed):
    """A store that notes how it is written to; it has an id that another process wrote just now."""

    written: ClassVar[list[str]] = []
    id = b""

    def do_GET(self) -> None:
        self.begin(200 if Counting.id else 404, len(Counting.id))
        self.wfile.write(Counting.id)

    def do_HEAD(self) -> None:
        self.begin(200 if Counting.id else 404, len(Counting.id))

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        Counting.written.append(self.path)
        if self.headers["If-None-Match"]:
            Counting.id = b"of-the-other"
            body = b"<Error><Code>PreconditionFailed</Code><Message>It exists.</Message></Error>"
            self.begin(412, len(body))
            self.wfile.write(body)
        else:
            self.begin(200, 0)

    def do_POST(self) -> None:
        self.begin(501, 0)


@pytest.fixture
def counting(settings, monkeypatch) -> Iterator[type[Counting]]:
    Counting.written.clear()
    Counting.id = b""
    with served(Counting) as options:
        use_bucket(settings, monkeypatch, f"s3://kept/files{options}")
        yield Counting


def test_a_large_file_is_one_request_of_which_a_killed_worker_leaves_nothing(counting):
    kept = keep_content("workspace", bytes(9 << 20), "application/gzip")
    assert counting.written == [f"/kept/files/{name_of(kept.sha256)}"]


def test_the_id_that_another_process_wrote_first_stays(counting):
    assert store_id() == "of-the-other"
    assert counting.written == ["/kept/files/store-id"]
