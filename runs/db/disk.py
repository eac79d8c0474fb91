"""Check that trials can be stored: disks have space, and the file store answers."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from evalhub.lib.disk_errors import FULL, is_database_full

logger = logging.getLogger(__name__)

PROBE_BYTES = 64 * 1024
MEGABYTE = 1_000_000
ADVICE = "Free some space there; evalhub then continues automatically."


class CannotStore(Exception):
    """Trials can't be stored now; the message says why and what to do."""

    kind: ClassVar[str]
    """The kind of a trial's error."""

    def remains(self) -> str:
        """Try to write; return why that fails, empty if it works."""
        raise NotImplementedError


class DiskFull(CannotStore):
    """A disk is full or failing."""

    kind = "disk"

    def remains(self) -> str:
        """Write a file in each place; return the first error, empty if all succeed."""
        for place in folders_to_write():
            try:
                place.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=place) as file:
                    file.write(bytes(PROBE_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                return describe_blocking(place, error.strerror or str(error))
        return ""


def cannot_store(error: BaseException) -> CannotStore | None:
    """Return a `CannotStore` for an error caused by a disk or the file store, else None."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, CannotStore):
            return seen
        if isinstance(seen, OSError) and seen.errno in FULL:
            place = Path(os.fsdecode(seen.filename)).parent if seen.filename else settings.DATA_DIR
            return DiskFull(describe_blocking(place, os.strerror(seen.errno)))
        if is_database_full(seen):
            return DiskFull(describe_blocking(_database_folder(), "the database cannot be written"))
        seen = seen.__cause__ or seen.__context__
    return None


def describe_blocking(place: Path | str, reason: str) -> str:
    """Return the sentence that pages, health and errors show."""
    return f"Disk full at {place}: {reason}. {ADVICE}"


def free_bytes(place: Path) -> int:
    """Return the free bytes at a path, or at its nearest existing parent."""
    return shutil.disk_usage(_existing(place)).free


def _existing(place: Path) -> Path:
    while not place.exists() and place != place.parent:
        place = place.parent
    return place


def folders_to_write() -> list[Path]:
    """Return the folders that trials are written to: work folders, artifacts, and SQLite's database."""
    folders = [settings.WORK_DIR, settings.ARTIFACTS_DIR]
    if connections[DEFAULT_DB_ALIAS].vendor == "sqlite":
        folders.append(Path(_database_folder()))
    return folders


def _database_folder() -> Path | str:
    database = connections[DEFAULT_DB_ALIAS]
    if database.vendor == "sqlite":
        return Path(str(database.settings_dict["NAME"])).resolve().parent
    return "the database server"


def least_free_bytes() -> int | None:
    """Return the free bytes of the fullest disk that trials are written to; None if unknown."""
    try:
        return min(free_bytes(place) for place in folders_to_write())
    except OSError:
        return None


def disk_shortage() -> str:
    """Return a sentence about the disk with less than EVALHUB_MIN_FREE_MB free; empty if there is none."""
    for place in folders_to_write():
        try:
            free = free_bytes(place) / MEGABYTE
        except OSError as error:
            return describe_blocking(place, error.strerror or str(error))
        if free < settings.MIN_FREE_MB:
            return describe_blocking(place, f"{free:.0f} MB free, evalhub needs {settings.MIN_FREE_MB} MB")
    return ""


def check_room_for_commands() -> None:
    """Raise `DiskFull` if the work folders are so full that a command's writes may have failed."""
    free = free_bytes(settings.WORK_DIR)
    # With less free space, failures of agents, gates and checks may come from the disk.
    if free < 256 * 1024:
        raise DiskFull(describe_blocking(settings.WORK_DIR, f"{free} bytes were free for commands"))
    inodes = os.statvfs(_existing(settings.WORK_DIR))
    # File systems without a fixed number of inodes say 0 of 0.
    # With fewer free inodes, too: no more files can be made.
    if inodes.f_files and inodes.f_favail < 16:
        raise DiskFull(
            describe_blocking(settings.WORK_DIR, f"{inodes.f_favail} inodes were free for commands")
        )


class StorageGuard:
    """What this process knows of disks and file store: an error is remembered until writing works again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: CannotStore | None = None
        self._problem = ""
        self._is_probing = False

    def note(self, error: CannotStore) -> None:
        """Remember a failed write: free bytes don't show quotas, failing disks and the file store."""
        with self._lock:
            self._noted, self._problem = error, str(error)
            if not self._is_probing:
                self._is_probing = True
                threading.Thread(target=self._probe, name="storage-guard", daemon=True).start()

    def blocking_reason(self) -> str:
        """Return why no trial should start now; empty if there is space."""
        return self._problem or disk_shortage()

    def _probe(self) -> None:
        """Try to write until it works, in a thread of its own: the file store may not answer."""
        while True:
            # Interval of write attempts after an error.
            time.sleep(5.0)
            noted = self._noted
            problem = _remains(noted) if noted else ""
            with self._lock:
                if noted is not self._noted:
                    # Another error was noted meanwhile.
                    continue
                self._problem = problem
                if not problem:
                    self._noted, self._is_probing = None, False
                    return


def _remains(noted: CannotStore) -> str:
    try:
        return noted.remains()
    except Exception:
        # Broad because no trial starts before an attempt succeeds, whatever this one raised.
        logger.exception("writing was tried again")
        return str(noted)


storage_guard = StorageGuard()
"""The state for this process."""
