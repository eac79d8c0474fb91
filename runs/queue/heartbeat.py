"""One thread a process that keeps its claims alive and hears that they are lost or cancelled."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.db import Error, connections

from evaluators.transcripts.latest import CallsTold
from runs.queue import claims, statements
from runs.queue.transactions import write_transaction

logger = logging.getLogger(__name__)

Kind = Literal["trial", "place", "run"]
LOOK_SECONDS = 0.5
"""How often cancellation is looked for; a cancelled agent ends within about this time."""
TELL_SECONDS = 2.0
"""How often what agents do is written down where it changed."""


NOTHING = CallsTold()


@dataclass
class Watched:
    """A trial whose agent's calls are told while it runs."""

    trial_id: int
    look: Callable[[], CallsTold]
    """Returns what is known of the calls by now, fit to be stored."""
    now: CallsTold = NOTHING
    told: CallsTold = NOTHING

    def has_news(self) -> bool:
        """Ask for the calls; tell whether they have to be written down."""
        self.now = self.look()
        return self.now != self.told


class Heartbeat:
    """Holds the tokens of a process, renews their leases every quarter lease, and marks those that should stop.

    It also writes down what the agents of their trials do.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, Kind] = {}
        self._stopped: set[str] = set()
        self._watched: dict[str, Watched] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, token: str, kind: Kind) -> Iterator[None]:
        """Keep a token alive while the block runs."""
        with self._lock:
            self._tokens[token] = kind
            self._ensure_thread()
        try:
            yield
        finally:
            with self._lock:
                self._tokens.pop(token, None)
                self._stopped.discard(token)
                self._watched.pop(token, None)

    def watch(self, trial_id: int, token: str, look: Callable[[], CallsTold]) -> None:
        """Write down what is known of a trial's calls as long as the token is held, as `look` tells it."""
        with self._lock:
            if token in self._tokens:
                self._watched[token] = Watched(trial_id, look)

    def stopped(self, token: str) -> bool:
        """Tell whether the work under this token is cancelled or belongs to somebody else by now."""
        return token in self._stopped

    def places(self) -> int:
        """Return how many lanes of this process are at work."""
        return len(self._held("place"))

    def _ensure_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
            self._thread.start()

    def _idle(self) -> bool:
        """Tell whether nothing is held; then the next claim starts a thread of its own."""
        with self._lock:
            if not self._tokens:
                self._thread = None
            return not self._tokens

    def _held(self, *kinds: Kind) -> list[str]:
        with self._lock:
            return [token for token, kind in self._tokens.items() if kind in kinds]

    def _beat(self) -> None:
        renewed = told = time.monotonic()
        time.sleep(LOOK_SECONDS)
        while not self._idle():
            try:
                due = time.monotonic() - renewed >= settings.LEASE_SECONDS / 4
                self._look(renew=due)
                if due:
                    renewed = time.monotonic()
                if time.monotonic() - told >= TELL_SECONDS:
                    told = time.monotonic()
                    self._tell()
            except Error as error:
                # The database may be away for a minute: the leases stand, and the next beat tries again.
                logger.warning("heartbeat: %s", error)
                connections.close_all()
            time.sleep(LOOK_SECONDS)
        connections.close_all()

    def _look(self, *, renew: bool) -> None:
        stop = claims.cancelled_tokens(self._held("trial", "run"))
        if renew:
            stop |= claims.renew(
                trials=self._held("trial"), places=self._held("place"), runs=self._held("run")
            )
        with self._lock:
            self._stopped |= stop & set(self._tokens)

    def _tell(self) -> None:
        with self._lock:
            watched = list(self._watched.items())
        news = [(token, each) for token, each in watched if _has_news(each)]
        if news:
            tell([_doing(token, each) for token, each in news])
        for _, each in news:
            each.told = each.now


def _doing(token: str, watched: Watched) -> Doing:
    now = watched.now
    return Doing(watched.trial_id, token, now.last, now.count, now.exit_code)


def _has_news(watched: Watched) -> bool:
    try:
        return watched.has_news()
    except Exception:
        # Strangers wrote what is looked at: whatever it does to its reader, the leases of all trials are renewed.
        logger.exception("trial %s: its agent's calls cannot be told", watched.trial_id)
        return False


heartbeat = Heartbeat()
"""The process's own."""


@dataclass(frozen=True)
class Doing:
    """What is known of an agent's calls in a trial that is held by this token."""

    trial_id: int
    token: str
    last: str
    calls: int | None
    exit_code: int | None = None
    """Of the last one."""


def tell(calls: Sequence[Doing]) -> None:
    """Write down what agents do, where the tokens still stand."""
    with write_transaction():
        for each in calls:
            values = {"doing": each.last, "calls_so_far": each.calls, "doing_exit": each.exit_code}
            statements.write_trial(each.trial_id, each.token, values)
