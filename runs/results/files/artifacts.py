"""Store trials' files, once per content, in the configured file store (`STORAGES["artifacts"]`).

The store is a folder of the data directory, or an S3-compatible bucket (`EVALHUB_STORE`). A random id in it shows
whether web and workers share it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import DEFAULT_DB_ALIAS, Error
from django.utils import timezone

from evalhub.lib.limits import LONGEST_NAME
from runs.db.disk import CannotStore, storage_guard
from runs.models import Worker

NAME = "store-id"
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict")
"""S3's errors when another process wrote the object first."""


def store_id() -> str:
    """Return the id of this process's store; the first process writes it. Raises one of `store_errors()`."""
    with suppress(FileNotFoundError):
        return _read()
    _create(secrets.token_hex(8).encode())
    # Read again, because another process may have been first.
    return _read()


def store_id_if_readable() -> str:
    """Return the id of this process's store; empty while the store can't be read or written."""
    try:
        return store_id()
    except store_errors():
        return ""


def watched_store_id() -> str:
    """Return `store_id_if_readable()`; while the bucket can't be reached, this process starts no trials."""
    try:
        return store_id()
    except store_errors() as error:
        # A bucket that refuses the id may still take files.
        if not isinstance(open_file_store(), LocalStore) and not refusal_code(error):
            storage_guard.note(store_away(error))
        return ""


def store_problems() -> list[str]:
    """Return a sentence for each online worker that uses another store. One query."""
    reported = dict(Worker.heard(now=timezone.now()).exclude(store="").values_list("name", "store"))
    if not reported:
        return []
    try:
        identity = store_id()
    except store_errors() as error:
        return [f"The file store cannot be read: {store_error_reason(error)}. Check EVALHUB_STORE."]
    return [
        f"Worker {name} stores files elsewhere: set EVALHUB_STORE or share the data directory."
        for name, other in reported.items()
        if other != identity
    ]


def store_problems_if_known() -> list[str]:
    """Return `store_problems()`; empty while the database is unavailable or not migrated."""
    try:
        return store_problems()
    except Error:
        return []


def _read() -> str:
    with open_file_store().open(NAME, "rb") as file:
        content: bytes = file.read(LONGEST_NAME)
    return content.decode("ascii", "replace").strip()


def _create(content: bytes) -> None:
    """Write the id unless there is one already."""
    store = open_file_store()
    if isinstance(store, LocalStore):
        store.create(NAME, content)
    else:
        _create_object(store, content)


def _create_object(store: Any, content: bytes) -> None:
    target = store.bucket.Object(f"{store.location}/{NAME}".lstrip("/"))
    try:
        target.put(Body=content, IfNoneMatch="*")
    except store.connection.meta.client.exceptions.ClientError as error:
        code = error.response.get("Error", {}).get("Code")
        if code == "NotImplemented":
            # Some stores can't write conditionally: the last writer wins, and every report reads again.
            target.put(Body=content)
        elif code not in _TAKEN:
            raise


@register(Tags.database)
def one_file_store(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn about workers with another file store."""
    if DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    return [
        Warning(
            problem,
            hint="Web and workers need one file store; see 'Files of trials' in docs/operations.md.",
            id="evalhub.W004",
        )
        for problem in store_problems_if_known()
    ]


logger = logging.getLogger(__name__)

STORE_ADVICE = "Check EVALHUB_STORE; evalhub continues automatically when files can be stored again."
PAUSES = (0.5, 2.0)
"""Seconds before a bucket is asked again."""
RENEW_SECONDS = 1800
"""Older content is stored again, so that `prune` doesn't remove it before its row exists."""


@dataclass(frozen=True)
class StoredFile:
    """A stored file's values for its `Artifact` row."""

    name: str
    sha256: str
    size: int
    media_type: str


class StoredFileUnavailable(Exception):
    """This server can't read a stored file; the message is a sentence."""

    id = "artifact/unavailable"


class StoreAway(CannotStore):
    """The bucket can't be reached, or refuses files."""

    kind = "store"

    def remains(self) -> str:
        """Store an empty content; return why that fails, empty if it works."""
        try:
            open_file_store().save(name_of(hashlib.sha256().hexdigest()), ContentFile(b""))
        except store_errors() as error:
            return str(store_away(error))
        return ""


def store_away(error: Exception) -> StoreAway:
    """Return a `StoreAway` for one of `store_errors()`; without addresses, because strangers read it in health."""
    code = refusal_code(error)
    what = f"refuses files: {code}" if code else f"can't be reached: {type(_cause(error)).__name__}"
    return StoreAway(f"The file store {what}. {STORE_ADVICE}")


def store_error_reason(error: Exception) -> str:
    """Return the text of one of `store_errors()`, without a full stop."""
    return str(_cause(error)).rstrip(".")


def _cause(error: Exception) -> Exception:
    """Return the last error of a download that broke off too often; any other error as it is."""
    last = getattr(error, "last_exception", None)
    return last if isinstance(last, Exception) else error


def refusal_code(error: Exception) -> str:
    """Return the code of a bucket's answer, empty for other errors."""
    answer = getattr(error, "response", None)
    return str(answer.get("Error", {}).get("Code", "")) if isinstance(answer, dict) else ""


class LocalStore(FileSystemStorage):
    """A folder with atomic writes: each file is written under a temporary name, then renamed."""

    def path(self, name: str) -> str:
        """Return a name's path below the configured folder."""
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


def open_file_store() -> Storage:
    """Return the file store."""
    return storages["artifacts"]


def name_of(sha256: str) -> str:
    """Return a content's name in the store; the first two digits of its hash are its folder."""
    return f"{sha256[:2]}/{sha256}"


def keep_content(name: str, content: bytes, media_type: str = "text/plain") -> StoredFile:
    """Store a content once and return its row's values. Raises `StoreAway` for a bucket, `OSError` for a folder."""
    sha256 = hashlib.sha256(content).hexdigest()
    for pause in PAUSES:
        try:
            _keep(name_of(sha256), content)
            break
        except StoreAway:
            time.sleep(pause)
    else:
        _keep(name_of(sha256), content)
    return StoredFile(name, sha256, len(content), media_type)


def _keep(name: str, content: bytes) -> None:
    try:
        if not _is_fresh(name):
            open_file_store().save(name, ContentFile(content))
    except store_errors() as error:
        if isinstance(open_file_store(), LocalStore):
            raise
        logger.warning("file store: %s", error)
        raise store_away(error) from error


def _is_fresh(name: str) -> bool:
    """Return whether the content exists and is too new for `prune`."""
    store = open_file_store()
    if not store.exists(name):
        return False
    try:
        return time.time() - store.get_modified_time(name).timestamp() < RENEW_SECONDS
    except FileNotFoundError:
        return False


def list_folders() -> list[str]:
    """Return the store's folders, none if it is empty."""
    try:
        names = open_file_store().listdir("")[0]
    except FileNotFoundError:
        return []
    return [folder for folder in names if re.fullmatch(r"[0-9a-f]{2}", folder)]


@contextmanager
def open_stored(sha256: str) -> Iterator[File[Any]]:
    """Open a stored file for reading. Raises `FileUnavailable`."""
    with open_kept(sha256) as file:
        yield file


def open_kept(sha256: str) -> File[Any]:
    """Return a stored file, open for reading; the caller closes it. Raises `FileUnavailable`."""
    try:
        with ExitStack() as on_error:
            file: File[Any] = on_error.enter_context(open_file_store().open(name_of(sha256), "rb"))
            # S3 sends the content only when it is asked for, which may fail where opening did not.
            file.file  # noqa: B018
            on_error.pop_all()
            return file
    except store_errors() as error:
        if is_missing_file(error):
            raise StoredFileUnavailable(
                "Its file is not on this server. Let web and workers share one store (`EVALHUB_STORE`), "
                "or restore it from a backup."
            ) from error
        raise StoredFileUnavailable(
            f"The file store cannot be read: {store_error_reason(error)}. Check EVALHUB_STORE."
        ) from error


def is_missing_file(error: Exception) -> bool:
    """Return whether a store's error says that it has no such file."""
    # An S3 store whose object is removed after it was opened answers with 404.
    answer = getattr(error, "response", {}).get("ResponseMetadata", {})
    return isinstance(error, FileNotFoundError) or answer.get("HTTPStatusCode") == 404


def store_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a store that can't be read or written."""
    # Loaded only with the S3 store, because the import is slow.
    boto, transfer = (sys.modules.get(f"{each}.exceptions") for each in ("botocore", "s3transfer"))
    requests = () if boto is None else (boto.BotoCoreError, boto.ClientError)
    downloads = () if transfer is None else (transfer.RetriesExceededError,)
    return (OSError, *requests, *downloads)
