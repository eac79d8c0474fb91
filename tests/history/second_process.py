"""A second process that computes ahead of this one."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import TypeVar

import django

T = TypeVar("T")
R = TypeVar("R")


def map_ahead(function: Callable[[T], R], values: Iterable[T], *, ahead: int) -> Generator[R, None, None]:
    """Yield the function's results in order, from a second process at most `ahead` values before this one.

    Function, values and results must pickle. The process ends with the generator.
    """
    executor = ProcessPoolExecutor(1, get_context("spawn"), initializer=_prepare_process)
    try:
        waiting: deque[Future[R]] = deque()
        for value in values:
            waiting.append(executor.submit(function, value))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)


def _prepare_process() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    django.setup()


def _end_with_parent() -> None:
    """End this process when the first one is killed, which the executor doesn't notice."""
    if parent := parent_process():
        parent.join()
        signal.raise_signal(signal.SIGTERM)
