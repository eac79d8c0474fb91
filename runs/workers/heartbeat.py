"""One thread per process that renews the leases of its claims and notices lost and cancelled ones."""

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

from evaluators.transcripts.latest import LatestCalls
from runs.db import statements
from runs.db.retry import outage
from runs.db.transactions import write_transaction
from runs.workers import claims, jobs

logger = logging.getLogger(__name__)

Kind = Literal["trial", "slot", "run", "job", "launch"]
CHECK_SECONDS = 0.5
"""Interval of checks for cancellation; a cancelled agent ends within about this time."""


NO_CALLS = LatestCalls()


@dataclass
class WatchedTrial:
    """A running trial whose agent's calls are stored."""

    trial_id: int
    read_calls: Callable[[], LatestCalls]
    """Returns the latest calls, ready to be stored."""
    latest: LatestCalls = NO_CALLS
    stored: LatestCalls = NO_CALLS

    def has_changed(self) -> bool:
        """Read the calls; return whether they differ from what is stored."""
        self.latest = self.read_calls()
        return self.latest != self.stored


class Heartbeat:
    """The tokens of a process: renews their leases every quarter lease and marks those that should stop.

    Also stores the activity of the agents of their trials.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, Kind] = {}
        self._stopped: set[str] = set()
        self._watched: dict[str, WatchedTrial] = {}
        self._lock = threading.Lock()
        self._emptied = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, token: str, kind: Kind) -> Iterator[None]:
        """Keep a token's lease alive while the block runs."""
        with self._lock:
            self._tokens[token] = kind
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._tokens.pop(token, None)
                self._stopped.discard(token)
                self._watched.pop(token, None)
                if not self._tokens:
                    self._emptied.notify_all()

    def watch(self, trial_id: int, token: str, read_calls: Callable[[], LatestCalls]) -> None:
        """Store what `read_calls` returns for as long as the token is kept alive."""
        with self._lock:
            if token in self._tokens:
                self._watched[token] = WatchedTrial(trial_id, read_calls)

    def stopped(self, token: str) -> bool:
        """Return whether the work under this token is cancelled or another worker has it."""
        return token in self._stopped

    def slots(self) -> int:
        """Return how many lanes of this process are busy."""
        return len(self._tokens_of("slot"))

    def _idle(self) -> bool:
        """Return whether there are no tokens; the next claim then starts a new thread."""
        with self._lock:
            if not self._tokens:
                self._thread = None
            return not self._tokens

    def _tokens_of(self, *kinds: Kind) -> list[str]:
        with self._lock:
            return [token for token, kind in self._tokens.items() if kind in kinds]

    def _beat(self) -> None:
        renewed = stored = time.monotonic()
        self._pause()
        while not self._idle():
            try:
                due = time.monotonic() - renewed >= settings.LEASE_SECONDS / 4
                self._check(renew=due)
                if due:
                    renewed = time.monotonic()
                # Interval at which changed activity of agents is stored.
                if time.monotonic() - stored >= 2.0:
                    stored = time.monotonic()
                    self.store_activity()
            except Error as error:
                # The database may be away for a minute: the leases last longer, and the next beat retries.
                outage.note(error)
                connections.close_all()
            self._pause()
        connections.close_all()

    def _pause(self) -> None:
        """Wait until the next check, or until no token is left: nothing then keeps the thread and its connection."""
        with self._emptied:
            self._emptied.wait_for(lambda: not self._tokens, CHECK_SECONDS)

    def _check(self, *, renew: bool) -> None:
        stop = claims.cancelled_tokens(self._tokens_of("trial", "run"))
        if renew:
            stop |= claims.renew_claims(
                trials=self._tokens_of("trial"),
                slots=self._tokens_of("slot"),
                runs=self._tokens_of("run"),
            )
            jobs.renew_jobs(self._tokens_of("job"))
            if self._tokens_of("launch"):
                claims.renew_own()
        with self._lock:
            self._stopped |= stop & set(self._tokens)

    def store_activity(self) -> None:
        """Store the activity that has changed since the last time."""
        with self._lock:
            watched = list(self._watched.items())
        changed = [(token, trial) for token, trial in watched if _has_changed(trial)]
        if changed:
            write_activity([_activity(token, trial) for token, trial in changed])
        for _, trial in changed:
            trial.stored = trial.latest


def _activity(token: str, watched: WatchedTrial) -> Activity:
    calls = watched.latest
    return Activity(watched.trial_id, token, calls.last, calls.count, calls.exit_code)


def _has_changed(watched: WatchedTrial) -> bool:
    try:
        return watched.has_changed()
    except Exception:
        # The output is untrusted: an error in its reader must not stop the renewal of other leases.
        logger.exception("trial %s: its agent's calls cannot be read", watched.trial_id)
        return False


heartbeat = Heartbeat()
"""The heartbeat of this process."""


@dataclass(frozen=True)
class Activity:
    """The latest calls of an agent, in a trial claimed under this token."""

    trial_id: int
    token: str
    last_call: str
    calls: int | None
    exit_code: int | None = None
    """Exit code of the last call."""


def write_activity(activities: Sequence[Activity]) -> None:
    """Store what agents do in trials that still have the token."""
    with write_transaction():
        for activity in activities:
            values = {
                "activity": activity.last_call,
                "calls_so_far": activity.calls,
                "activity_exit_code": activity.exit_code,
            }
            statements.write_trial(activity.trial_id, activity.token, values)
