"""Upgrade 0.1.1 with open work of each kind, do it, and print how each ended: `python -m tests.upgrade.open_work`."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.utils import timezone

from tests.greeting import SUCCEEDS, greeting
from tests.upgrade.__main__ import fill, migrate_to

VERSION = "release_0_1_1"
GRADING = {
    "suite": {"name": "greet.yaml", "text": greeting(SUCCEEDS)},
    "evidence": {"files": {"out.txt": "hello"}},
}
TAKEN = {"worker": "gone:1", "token": "0123", "lease_until": 1.0}


def store_open_work(apps: Any, address: str) -> None:
    """Store what nobody has taken yet, and what a worker had that is gone, in the tables of 0.1.1."""

    def rows(name: str) -> Any:
        return apps.get_model("runs", name).objects

    run, now = rows("Run").order_by("pk").first(), timezone.now()
    project, by = run.project_id, apps.get_model("auth", "User").objects.first()
    definition = {"name": "mock", "provider": "mock", "response": "hello"}
    target = rows("Target").create(project_id=project, name="m", provider="mock", definition=definition)
    asked = {"project_id": project, "by": by}
    for taken in ({}, TAKEN):
        rows("SuiteProof").create(suite_version_id=run.suite_version_id, created=now, **taken)
        rows("Reassessment").create(run=run, kind="grade", created=now, **taken)
        rows("GradeRequest").create(request=GRADING, created=now, started=now if taken else None, **asked)
        checked = {"worker": taken.get("worker", "")}
        rows("TargetCheck").create(target=target, asked=now, **checked)
        rows("TargetTry").create(
            name="mock", definition=definition, prompt="Say hello", created=now, **asked, **checked
        )
    rows("ProviderBatch").create(run=run, state="submitted", external_id="batch_1", token="0123")
    channel = rows("Channel").create(
        project_id=project, name="hook", kind="webhook", address=address, secret="whsec_" + "A" * 43 + "="
    )
    for state in ("queued", "sending"):
        event = rows("Notification").create(project_id=project, event="test", key=f"test:{state}", by=by)
        rows("Delivery").create(notification=event, channel=channel, uid=f"msg_{state}", state=state)


def ends() -> dict[str, list[Any]]:
    """Return how the two newest pieces of work of each kind ended, the untaken one first."""
    from runs.models import (
        Delivery,
        GradeRequest,
        ProviderBatch,
        Reassessment,
        SuiteProof,
        TargetCheck,
        TargetTry,
    )

    found: dict[str, Any] = {
        "proofs": SuiteProof.objects.values_list("error", flat=True),
        "reassessments": Reassessment.objects.values_list("error", flat=True),
        "gradings": GradeRequest.objects.values_list("result__refused__detail", flat=True),
        "checks": TargetCheck.objects.values_list("sentence", flat=True),
        "tries": TargetTry.objects.values_list("result__error", flat=True),
        "batches": ProviderBatch.objects.values_list("state", flat=True),
        "deliveries": Delivery.objects.values_list("state", flat=True),
    }
    return {name: list(rows.order_by("-pk")[:2])[::-1] for name, rows in found.items()}


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from runs.models import Job
    from runs.tasks import WORK, tick
    from runs.workers import jobs
    from runs.workers.job_runner import run_job
    from tests.runs.servers import Reply, serving

    rows = json.loads(gzip.decompress(Path(__file__).with_name(f"{VERSION}.json.gz").read_bytes()))
    apps = migrate_to(VERSION)
    fill(apps, rows)
    with serving(Reply()) as server:
        store_open_work(apps, server.url)
        call_command("migrate", verbosity=0)
        kinds = Counter(Job.objects.values_list("kind", flat=True))
        for _ in range(3):
            for job in Job.objects.filter(token="").order_by("pk"):
                run_job(job.pk, WORK[job.kind])
            # The tick would give workers time to come back first.
            jobs.end_lost()
            tick()
        sent = len(server.requests)
    print(json.dumps({"jobs": kinds, "ends": ends(), "left": Job.objects.count(), "sent": sent}))


if __name__ == "__main__":
    main()
