"""Files kept of trials, once for each content, in the file store of the settings (`STORAGES["artifacts"]`).

The store is a folder of the data directory, or an S3-compatible bucket (`EVALHUB_STORE`).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages

RENEW_SECONDS = 1800
"""Content that was stored longer ago is stored again, so that `prune` leaves it until its row is there."""


@dataclass(frozen=True)
class Kept:
    """A file that is kept: what the `Artifact` row says of it."""

    name: str
    sha256: str
    size: int
    media_type: str


class FileUnavailable(Exception):
    """A kept file that this server cannot read; the message is a sentence for people."""

    id = "artifact/unavailable"


class LocalStore(FileSystemStorage):
    """A folder whose files appear whole: each is written under a temporary name, then renamed."""

    def path(self, name: str) -> str:
        """Return where a name lies below the folder of the settings."""
        return f"{settings.ARTIFACTS_DIR}/{name}"

    def create(self, name: str, content: bytes) -> None:
        """Write a new file whole; leave one that is there as it is."""
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent) as stream:
            stream.write(content)
            stream.flush()
            # A link never replaces a file, as a rename does.
            with suppress(FileExistsError):
                os.link(stream.name, target)

    def _save(self, name: str, content: File[bytes]) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as stream:
            try:
                stream.write(content.read())
                stream.close()
                Path(stream.name).rename(target)
            except BaseException:
                Path(stream.name).unlink(missing_ok=True)
                raise
        return name


def store() -> Storage:
    """Return the store of kept files."""
    return storages["artifacts"]


def name_of(sha256: str) -> str:
    """Return the name of a content in the store: files of one folder share the first two digits of their hash."""
    return f"{sha256[:2]}/{sha256}"


def keep(name: str, content: bytes, media_type: str = "text/plain") -> Kept:
    """Store the content and return its row. The same content again takes no space."""
    sha256 = hashlib.sha256(content).hexdigest()
    if not _is_fresh(name_of(sha256)):
        store().save(name_of(sha256), ContentFile(content))
    return Kept(name, sha256, len(content), media_type)


def _is_fresh(name: str) -> bool:
    """Whether the content is there and so young that `prune` will not remove it."""
    kept = store()
    if not kept.exists(name):
        return False
    try:
        return time.time() - kept.get_modified_time(name).timestamp() < RENEW_SECONDS
    except FileNotFoundError:
        return False


def folders() -> list[str]:
    """Return the folders of kept files; a store without any file has none."""
    try:
        found = store().listdir("")[0]
    except FileNotFoundError:
        return []
    return [folder for folder in found if re.fullmatch(r"[0-9a-f]{2}", folder)]


@contextmanager
def opened(sha256: str) -> Iterator[File[Any]]:
    """Open a kept file for reading. Raises `FileUnavailable`."""
    with open_kept(sha256) as file:
        yield file


def open_kept(sha256: str) -> File[Any]:
    """Return a kept file, open for reading; the caller closes it. Raises `FileUnavailable`."""
    try:
        return store().open(name_of(sha256), "rb")
    except FileNotFoundError as error:
        raise FileUnavailable(
            "Its file is not on this server. Let web and workers share one store (`EVALHUB_STORE`), "
            "or restore it from a backup."
        ) from error
    except store_errors() as error:
        raise FileUnavailable(f"The file store cannot be read: {error}. Check EVALHUB_STORE.") from error


def store_errors() -> tuple[type[Exception], ...]:
    """Return what the store raises where it cannot be read or written."""
    # Loaded with the S3 store only, because importing it takes a web process long.
    boto = sys.modules.get("botocore.exceptions")
    return (OSError,) if boto is None else (OSError, boto.BotoCoreError, boto.ClientError)
