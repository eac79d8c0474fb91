"""A second process that computes ahead of this one."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import TypeVar

import django

T = TypeVar("T")
R = TypeVar("R")


class ProcessLost(Exception):
    """The second process ended early; the message is a sentence."""


def map_ahead(function: Callable[[T], R], values: Iterable[T], *, ahead: int) -> Generator[R, None, None]:
    """Yield the function's results in order, from a second process at most `ahead` values before this one.

    Function, values and results must pickle. The process ends with the generator. Raises `ProcessLost`.
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
    except BrokenProcessPool as error:
        sentence = "The second process ended early, perhaps because memory ran out."
        raise ProcessLost(sentence) from error
    finally:
        executor.shutdown(cancel_futures=True)


def _prepare_process() -> None:
    # Ctrl-C reaches both processes; the first one ends the second.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    django.setup()


def _end_with_parent() -> None:
    """End this process when the first one is killed, which the executor doesn't notice."""
    if parent := parent_process():
        parent.join()
        signal.raise_signal(signal.SIGTERM)
