"""Whether web processes keep growing: two clients load every page in a loop, for two hours by default.

EVALHUB_BENCH_SOAK_MINUTES sets the length. The first half is warm-up; growth is measured over the second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from statistics import linear_regression

from tests.bench.figures import Figure
from tests.bench.pages import PAGES, Visitor, history, served, signed_in
from tests.bench.workers import resident_mb

RUNS, TRIALS = 100, 20
CLIENTS = 2
DEFAULT_MINUTES = 120
LEAST_MINUTES = 2
MB_PER_MINUTE = 0.05


def soak() -> Iterator[Figure]:
    """Megabytes per minute by which the web process that grows fastest grows in the second half."""
    minutes = length(os.environ.get("EVALHUB_BENCH_SOAK_MINUTES", ""))
    with history("soak", RUNS, TRIALS, "") as (data, env):
        visitor = signed_in(data, env)
        with served(data, env) as processes:
            samples, requests = _loaded(visitor, processes, minutes)
    print(f"{requests} requests in {minutes} minutes")
    growths = [growth([each[number] for each in samples]) for number in range(len(processes))]
    yield Figure(
        f"a web process, growth in the last half of {minutes} min", max(growths), "MB/min", MB_PER_MINUTE
    )


def length(text: str) -> int:
    """Return the soak's minutes. Raises `SystemExit` with a sentence for any text but a whole number of them."""
    if not text:
        return DEFAULT_MINUTES
    if not text.isascii() or not text.isdigit() or int(text) < LEAST_MINUTES:
        raise SystemExit(
            f"EVALHUB_BENCH_SOAK_MINUTES is {text!r}. Give a whole number of minutes, {LEAST_MINUTES} or more."
        )
    return int(text)


def growth(megabytes: Sequence[float]) -> float:
    """Return the slope per sample of the second half, by least squares, so that one odd sample decides nothing."""
    half = megabytes[(len(megabytes) - 1) // 2 :]
    return linear_regression(range(len(half)), half).slope


def _loaded(visitor: Visitor, processes: list[int], minutes: int) -> tuple[list[list[float]], int]:
    """Return the megabytes of each process at the start and after each minute, and the number of requests."""
    stop = threading.Event()
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(_browse, visitor, stop) for _ in range(CLIENTS)]
        try:
            samples = list(_samples(processes, minutes, clients))
        finally:
            stop.set()
    return samples, sum(client.result() for client in clients)


def _browse(visitor: Visitor, stop: threading.Event) -> int:
    """Load every page in turn until `stop` is set; return the number of requests."""
    requests = 0
    while not stop.is_set():
        for address, _, _ in PAGES.values():
            visitor.milliseconds(address)
            requests += 1
    return requests


def _samples(processes: list[int], minutes: int, clients: list[Future[int]]) -> Iterator[list[float]]:
    began = time.monotonic()
    for minute in range(minutes + 1):
        time.sleep(max(0.0, began + 60 * minute - time.monotonic()))
        for client in clients:
            if client.done():
                # A client ends early only by an error, which its result raises.
                client.result()
        sample = [resident_mb(pid) for pid in processes]
        print(f"{minute:4} min  {'  '.join(f'{each:.1f} MB' for each in sample)}", flush=True)
        yield sample
