"""What gunicorn does beside its command line: it reads this file from the working directory."""

import gc
import threading
from typing import Any


def when_ready(server: Any) -> None:
    """Freeze what `--preload` has loaded, so that web processes share it and no request collects it again."""
    gc.collect()
    gc.freeze()


def post_worker_init(worker: Any) -> None:
    """Warn in the log when workers store files elsewhere; only the first web process asks, and nobody waits."""
    if worker.age == 1:
        threading.Thread(target=_log_store_problems, args=(worker.log,), daemon=True).start()


def _log_store_problems(log: Any) -> None:
    from django.db import connections

    from runs.results.files.artifacts import store_problems_if_known

    for problem in store_problems_if_known():
        log.warning(problem)
    connections.close_all()
