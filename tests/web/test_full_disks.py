"""What health and metrics say of full disks."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Worker

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
