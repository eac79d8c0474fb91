"""What workers do about garbage; tests/web/test_gunicorn.py has web processes."""

from __future__ import annotations

import gc

from celery.signals import worker_shutdown

from evalhub.celery import app


def test_a_worker_exits_without_a_last_collection() -> None:
    kept = [[] for _ in range(1000)]
    frozen = gc.get_freeze_count()
    worker_shutdown.send(sender=app)
    assert gc.get_freeze_count() >= frozen + len(kept)
