"""What pages, REST, health and metrics say of full disks."""

from __future__ import annotations

import gc
import io
import logging
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from evalhub.web.middleware import ApiErrors
from runs.models import Worker
from scenarios.models import SuiteVersion
from tests.builders import make_member, make_project
from tests.requirements import missing

pytestmark = pytest.mark.django_db
ENOUGH_FOR_NOBODY = 10**9
"""Megabytes that no disk of a test machine has."""


def test_health_names_the_full_disk(settings, client: Client):
    settings.MIN_FREE_MB = ENOUGH_FOR_NOBODY
    answer = client.get("/healthz").json()
    assert answer["ok"] is False
    assert answer["disk"].startswith(f"Disk full at {settings.WORK_DIR}: ")
    assert "Free some space there" in answer["disk"]


def test_health_shows_a_workers_disk_problem(client: Client):
    Worker.objects.create(name="eval-1", problem="Disk full at /data/work: no room.", seen=timezone.now())
    assert client.get("/healthz").json()["disk"] == "Disk full at /data/work: no room."


def test_metrics_tell_the_free_bytes(client: Client):
    Worker.objects.create(name="eval-1", free_bytes=12_345)
    text = client.get("/metrics").content.decode()
    assert 'evalhub_worker_free_bytes{worker="eval-1"} 12345' in text
    (free,) = [line for line in text.splitlines() if line.startswith("evalhub_data_free_bytes ")]
    assert float(free.split()[1]) > 0


SCENARIO = "name: a\ndescription: d.\ntask:\n  prompt: x\nevaluation:\n  gates: []\n"


def _upload() -> tuple[int, str]:
    """Upload a suite larger than what is read into memory; return the answer's status and text."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("s/a.yaml", SCENARIO)
        archive.writestr("s/large", os.urandom(5_000_000))
    client = Client(raise_request_exception=False)
    client.force_login(make_member(make_project()))
    given = {"file": SimpleUploadedFile("s.zip", content.getvalue())}
    answer = client.post("/p/tools/upload/", given)
    return answer.status_code, answer.content.decode()


@pytest.fixture
def small_folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder of a file system of 1 MB."""
    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(words, check=False, capture_output=True).returncode:
        missing("root", "Only root mounts a small file system.")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


# Django leaves an upload that failed to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_upload_without_room_for_it_is_told_so(settings, small_folder: Path, caplog):
    settings.FILE_UPLOAD_TEMP_DIR = str(small_folder)
    # Pytest's records hold the error, and with it the file that is being uploaded.
    with caplog.at_level(logging.CRITICAL + 1, logger="django.request"):
        status, text = _upload()
    assert (status, "so nothing was saved" in text, "web/disk-full" in text) == (507, True, True)
    assert str(small_folder) not in text
    gc.collect()
    assert list(small_folder.iterdir()) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite alone limits its own database.")
def test_a_full_database_saves_nothing_and_is_told():
    with connection.cursor() as cursor:
        # Pages that earlier tests left free would hold the upload.
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count = {cursor.fetchone()[0] + 20}")
        try:
            status, text = _upload()
        finally:
            cursor.execute("PRAGMA max_page_count = 4294967294")
    assert (status, "web/disk-full" in text) == (507, True)
    assert not SuiteVersion.objects.exists()


def test_rest_answers_it_in_its_own_shape(rf):
    answer = ApiErrors(lambda request: HttpResponse(status=507))(rf.post("/api/v1/suites"))
    assert (answer.status_code, b"api/disk-full" in answer.content) == (507, True)
