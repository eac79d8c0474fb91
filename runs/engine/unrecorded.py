"""Results that can't be recorded because the database is away: kept on this worker's disk until it answers.

A file holds a claim and its result. Its process holds a lock on it, so that another process records only what a process
that has ended left. The claim's token decides whether the result still counts.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from django.conf import settings

from evalhub.lib.storable_text import storable_json
from runs.db.retry import outage
from runs.engine.recording import TrialResult
from runs.workers.claims import Claim

logger = logging.getLogger(__name__)

UNREADABLE = ".unreadable"
"""Ending of files that hold no result of this version; somebody may want to look at them."""


class UnrecordedResult(NamedTuple):
    """A claim and the result that waits to be recorded under it."""

    claim: Claim
    result: TrialResult


class WaitingResult:
    """A finished trial's result while it waits to be recorded."""

    def __init__(self, claim: Claim, result: TrialResult) -> None:
        self._kept = UnrecordedResult(claim, result)
        self._lock: int | None = None
        self._tried = False

    @property
    def path(self) -> Path:
        """The file that holds the result."""
        return _folder() / f"{self._kept.claim.trial_id}-{self._kept.claim.token}.json"

    @property
    def is_kept(self) -> bool:
        """Whether the file was written."""
        return self._lock is not None

    def keep(self) -> None:
        """Write the result to disk, once. A disk that takes no file is logged: the result waits in memory alone."""
        if self._tried:
            return
        self._tried = True
        trial_id = self._kept.claim.trial_id
        outage.add(trial_id)
        try:
            self._lock = _write(self.path, self._kept)
        except OSError as error:
            logger.warning("trial %s: its result can't be kept on disk: %s", trial_id, error)
        else:
            logger.warning("trial %s: its result is kept in %s until it can be recorded", trial_id, self.path)

    def drop(self) -> None:
        """Remove the file, because the result was recorded or nobody wants it."""
        if self._tried:
            outage.remove(self._kept.claim.trial_id)
        if self._lock is not None:
            self.path.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "unrecorded"


def _write(path: Path, result: UnrecordedResult) -> int:
    """Write a file in one step; return its descriptor, which holds its lock. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = storable_json(msgspec.to_builtins(result._asdict()))
    lock, part = tempfile.mkstemp(dir=path.parent)
    try:
        with open(lock, "wb", closefd=False) as file:
            fcntl.flock(lock, fcntl.LOCK_EX)
            file.write(content.encode())
            file.flush()
            os.fsync(lock)
        Path(part).replace(path)
    except OSError:
        os.close(lock)
        Path(part).unlink(missing_ok=True)
        raise
    return lock


def files_left() -> Iterator[Path]:
    """Yield the files that processes left that have ended."""
    with suppress(FileNotFoundError):
        yield from sorted(path for path in _folder().iterdir() if path.suffix == ".json")


@contextmanager
def take_file(path: Path) -> Iterator[UnrecordedResult | None]:
    """Give what a file holds and remove the file after the block; None while another process has it.

    If the block raises, the file stays. One that can't be read is logged and set aside.
    """
    try:
        lock = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield None
        return
    try:
        result = _read_locked(lock, path)
        yield result
        if result is not None:
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _read_locked(lock: int, path: Path) -> UnrecordedResult | None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    try:
        stored = msgspec.json.decode(path.read_bytes())
        return UnrecordedResult(
            msgspec.convert(stored["claim"], Claim), msgspec.convert(stored["result"], TrialResult)
        )
    except FileNotFoundError:
        # Its process recorded it meanwhile.
        return None
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        logger.warning("%s holds no result that this version can read, so it is set aside: %s", path, error)
        path.rename(path.with_suffix(UNREADABLE))
        return None
