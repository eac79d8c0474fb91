"""The Celery application. Messages are wake-ups; the work is in the database."""

import os
import threading
from typing import Any

from celery import Celery, bootsteps
from celery.signals import worker_init, worker_ready, worker_shutting_down
from django.conf import settings
from kombu import Queue

from evalhub.broker import broker_address
from evalhub.broker_outages import Polling, Reconnecting
from evalhub.startup import set_up
from runs.labels import celery_queue, normalize_labels

# Celery throws away what Django's checks find, and they import every page.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
set_up()

SHORT_TASKS, LANES = "evalhub", "evalhub.lanes"

app = Celery("evalhub")
_broker = broker_address()
app.conf.update(
    broker_url=_broker.url,
    broker_use_ssl=_broker.tls or None,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # Lost messages cost only the time until the next tick, so a long visibility timeout protects against doubled ones.
    # Nor is a broker that is away asked again, for six seconds, by a page: the next tick sends the wake-up.
    broker_transport_options={
        "visibility_timeout": 12 * 3600,
        "max_retries": 0,
        **_broker.transport_options(),
    },
    # Clients of the broker cannot stop workers or make them unpickle data.
    worker_enable_remote_control=False,
    accept_content=["json"],
    result_accept_content=["json"],
    task_serializer="json",
    result_serializer="json",
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_concurrency=settings.TASK_THREADS,
    worker_hijack_root_logger=False,
    # Wake-ups for trials apart from preparation, checks and grading, so that none waits for the other.
    task_default_queue=SHORT_TASKS,
    # And a queue for each label of this worker; see docs/operations.md.
    task_queues=[
        Queue(name)
        for name in (SHORT_TASKS, LANES, *map(celery_queue, normalize_labels(settings.WORKER_LABELS)))
    ],
    task_routes={"runs.tasks.wake_lanes": {"queue": LANES}},
    task_publish_retry=False,
    beat_schedule={
        "tick": {"task": "runs.tasks.tick", "schedule": 5.0, "options": {"expires": 5}},
        "remove-old": {
            "task": "runs.tasks.remove_old_notifications",
            "schedule": 3600.0,
            "options": {"expires": 3600},
        },
    },
)
app.autodiscover_tasks(["runs"])


class Lanes(bootsteps.StartStopStep):
    """Runs trials beside Celery's own threads, which do short tasks."""

    requires = ("celery.worker.components:Pool",)

    def include_if(self, parent: Any) -> bool:
        """Run trials only in workers that consume the lanes' queue."""
        return LANES in parent.app.amqp.queues.consume_from

    def start(self, parent: Any) -> None:
        from runs.engine.lanes import lane_pool

        lane_pool.start(settings.WORKER_THREADS)

    def stop(self, parent: Any) -> None:
        """Wait for the trials that are running now."""
        from runs.engine.lanes import lane_pool

        lane_pool.stop()

    def terminate(self, parent: Any) -> None:
        from runs.engine.lanes import lane_pool

        lane_pool.stop(wait=False)


app.steps["worker"].add(Lanes)
app.steps["worker"].add(Polling)
app.steps["consumer"].add(Reconnecting)


@worker_init.connect
def preload(**_: object) -> None:
    """Import the modules in `EVALHUB_PRELOAD`, so that the first trial doesn't wait for them."""
    import importlib

    for module in settings.PRELOAD:
        importlib.import_module(module)


_leaving = threading.Event()


@worker_ready.connect
def register_worker(**_: object) -> None:
    """Register this worker until it ends."""
    from runs.engine.lanes import lane_pool
    from runs.results.files.artifacts import watched_store_id
    from runs.workers import worker_registry

    worker_registry.start(_leaving, lane_pool.size, watched_store_id)


@worker_shutting_down.connect
def stop_lanes(**_: object) -> None:
    """Stop the lanes after their current trials; queued ones wait for the next worker."""
    from runs.engine import lanes

    _leaving.set()
    lanes.stop()
