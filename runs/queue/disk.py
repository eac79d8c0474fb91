"""Whether the disks that trials are written to have room, and what to say when they don't."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
SQLITE_FULL = (10, 13)
"""SQLITE_IOERR and SQLITE_FULL."""
POSTGRESQL_FULL = ("53100", "58030")
"""SQLSTATEs disk_full and io_error."""
PROBE_SECONDS = 5.0
"""After an error of the disk, writing is tried this often."""
PROBE_BYTES = 64 * 1024
LEAST_FOR_AGENTS = 256 * 1024
"""With less the failures of an agent say nothing about it."""
MEGABYTE = 1_000_000
ADVICE = "Free some space there; evalhub then goes on by itself."


class DiskFull(Exception):
    """A disk is full or fails; the message says where and what to do."""


def disk_full(error: BaseException) -> DiskFull | None:
    """Return what to say of the full or failing disk behind an error, None where it has another reason."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, DiskFull):
            return seen
        if isinstance(seen, OSError) and seen.errno in FULL:
            place = Path(os.fsdecode(seen.filename)).parent if seen.filename else settings.DATA_DIR
            return DiskFull(sentence(place, os.strerror(seen.errno)))
        if is_database_full(seen):
            return DiskFull(sentence(_database_folder(), "the database cannot be written"))
        seen = seen.__cause__ or seen.__context__
    return None


def is_database_full(error: BaseException) -> bool:
    """Return whether the database's own disk is full or fails."""
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    if code is not None:
        # The extended code's lowest byte is the plain one.
        return code & 0xFF in SQLITE_FULL
    return getattr(error.__cause__, "sqlstate", None) in POSTGRESQL_FULL


def sentence(place: Path | str, reason: str) -> str:
    """Return the sentence that pages, health and errors show."""
    return f"Disk full at {place}: {reason}. {ADVICE}"


def free_bytes(place: Path) -> int:
    """Return the bytes that this process may still write at a path, or where it will be made."""
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def places() -> list[Path]:
    """Return the folders that trials are written to: work folders, kept files, and SQLite's database."""
    found = [settings.WORK_DIR, settings.ARTIFACTS_DIR]
    if connections[DEFAULT_DB_ALIAS].vendor == "sqlite":
        found.append(Path(_database_folder()))
    return found


def _database_folder() -> Path | str:
    database = connections[DEFAULT_DB_ALIAS]
    if database.vendor == "sqlite":
        return Path(str(database.settings_dict["NAME"])).resolve().parent
    return "the database server"


def least_free_bytes() -> int | None:
    """Return the free bytes of the fullest of the disks that trials are written to; None where one can't tell."""
    try:
        return min(free_bytes(place) for place in places())
    except OSError:
        return None


def shortage() -> str:
    """Return which disk has less room than EVALHUB_MIN_FREE_MB asks for, and what to do; empty for none."""
    for place in places():
        try:
            free = free_bytes(place) / MEGABYTE
        except OSError as error:
            return sentence(place, error.strerror or str(error))
        if free < settings.MIN_FREE_MB:
            return sentence(place, f"{free:.0f} MB free, evalhub needs {settings.MIN_FREE_MB} MB")
    return ""


def check_room_for_agents() -> None:
    """Raise `DiskFull` where work folders are so full that an agent's own writes have failed."""
    free = free_bytes(settings.WORK_DIR)
    if free < LEAST_FOR_AGENTS:
        raise DiskFull(sentence(settings.WORK_DIR, f"{free} bytes were left to the agent"))


class Room:
    """What this process knows of its disks: an error is remembered until writing works again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted = ""
        self._probe_at = 0.0

    def note(self, error: DiskFull) -> None:
        """Remember that writing failed: free bytes say nothing of quotas and failing disks."""
        with self._lock:
            self._noted = str(error)
            self._probe_at = time.monotonic() + PROBE_SECONDS

    def problem(self) -> str:
        """Return why nothing should be started now, empty where there is room."""
        with self._lock:
            if self._noted and time.monotonic() >= self._probe_at:
                self._probe_at = time.monotonic() + PROBE_SECONDS
                self._noted = _probed()
            return self._noted or shortage()


def _probed() -> str:
    """Write a file in each place; return what went wrong, empty for nothing."""
    for place in places():
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(bytes(PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            return sentence(place, error.strerror or str(error))
    return ""


room = Room()
"""The process's own."""
