"""Settings from the environment. Each `NAME` is read from the file that `NAME_FILE` names, too."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def read_text(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file that `<name>_FILE` names, or the default."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(
                f"{name}_FILE names {path}, which cannot be read: {error.strerror}."
            ) from error
    return os.environ.get(name, default)


def read_words(name: str) -> list[str]:
    """Return a comma separated variable as its words."""
    return [word.strip() for word in read_text(name).split(",") if word.strip()]


def read_roots(name: str) -> list[str]:
    """Return a comma separated variable of absolute paths, each perhaps with `:rw` after it."""
    paths = read_words(name)
    if wrong := [word for word in paths if not Path(word.removesuffix(":rw")).is_absolute()]:
        raise ImproperlyConfigured(
            f"{name} has '{wrong[0]}', which isn't an absolute path. Write /srv/recordings, "
            "or /srv/logs:rw where targets may write."
        )
    return paths


def read_integer(name: str, default: int) -> int:
    """Return a whole number."""
    value = read_text(name)
    try:
        return int(value) if value else default
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name} is '{value}'. Give it a whole number, such as {default}."
        ) from error


def read_choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words."""
    value = read_text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is '{value}'. Give it one of: {', '.join(allowed)}.")
    return value


def read_networks(name: str, addresses: list[str]) -> list[str]:
    """Return addresses and networks as they were given, such as 10.0.0.0/8, or `unix`, checked."""
    for address in addresses:
        try:
            if address != "unix":
                ipaddress.ip_network(address)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{name} holds '{address}'. Give addresses or networks such as 10.0.0.0/8, or unix for a Unix socket."
            ) from error
    return addresses


def readable_file(name: str) -> str:
    """Return the path of a file that this process can read; empty where the variable is not set."""
    path = read_text(name)
    try:
        if path:
            Path(path).open("rb").close()
    except OSError as error:
        raise ImproperlyConfigured(f"{name} names {path}, which cannot be read: {error.strerror}.") from error
    return path


def user_data() -> Path:
    """Return the folder for the data of an installed evalhub (XDG Base Directory Specification)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if home else Path.home() / ".local" / "share") / "evalhub"


def make_directory(name: str, path: Path) -> None:
    """Make a directory where there is none; it has to be writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        writable = os.access(path, os.W_OK | os.X_OK)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data directory {path} cannot be made: {error.strerror}. Name another one in {name}."
        ) from error
    if not writable:
        raise ImproperlyConfigured(
            f"The data directory {path} is not writable. Change its owner, or name another one in {name}."
        )


def kept_secret(name: str, file: Path) -> str:
    """Return the variable, else a secret that is made once and kept in `file`, readable by its owner only."""
    value = read_text(name)
    if value:
        return value
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text(encoding="utf-8").strip()
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        value = secrets.token_urlsafe(48)
        stream.write(value)
    return value


SQLITE_OPTIONS = {
    # Immediate transactions take the write lock at once: upgrading a read lock later fails at once instead of waiting.
    "transaction_mode": "IMMEDIATE",
    # Seconds; who waits isn't served in turn, so a busy machine's first start took more than 20.
    "timeout": 60,
    # Every thread keeps its connection, so each cache is small; the file is not mapped, because what is read of it
    # would count as memory of the process, 50 MB over a long history.
    "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON;"
    "PRAGMA cache_size=-1500;",
}


def _prepare_threshold(value: str) -> int | None:
    if value == "none":
        return None
    if not value.isdecimal():
        raise ImproperlyConfigured(
            f"prepare_threshold of DATABASE_URL is '{value}'. Give it a whole number, or none for a pooler that keeps "
            "no prepared statements."
        )
    return int(value)


DATABASE_HOST = re.compile(r"(\[[^]]*\]|[^:]*)(?::(\d*))?")
"""A host of DATABASE_URL, an IPv6 address in brackets, and perhaps its port."""

WRONG_DATABASE_HOST = (
    "DATABASE_URL has a host or port that is none. Write postgresql://user@host:5432/name, "
    "or postgresql://user@host1:5432,host2:5432/name."
)


def _database_hosts(netloc: str) -> tuple[str, str]:
    """Return the hosts and ports between `//` and `/` as libpq takes them, each separated by commas."""
    matches = [DATABASE_HOST.fullmatch(each) for each in netloc.rpartition("@")[2].split(",")]
    known = [match for match in matches if match and int(match[2] or 5432) in range(1, 65536)]
    if len(known) < len(matches) or (len(known) > 1 and not all(match[1] for match in known)):
        raise ImproperlyConfigured(WRONG_DATABASE_HOST)
    hosts = ",".join(unquote(match[1].strip("[]")) for match in known)
    if not any(match[2] for match in known):
        return hosts, ""
    # libpq takes one port for every host, or one for each.
    return hosts, ",".join(match[2] or "5432" for match in known)


def parse_database_url(url: str) -> dict[str, Any]:
    """Return Django's settings for `sqlite:///path` or `postgresql://user:password@host:port/name?option=value`.

    Several hosts, `host1:port1,host2:port2`, are tried in turn, as libpq does.
    Source: https://www.postgresql.org/docs/current/libpq-connect.html, 34.1.1.3. Specifying Multiple Hosts.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ImproperlyConfigured(WRONG_DATABASE_HOST) from error
    if parts.scheme == "sqlite":
        # Four slashes are an absolute path, three one that is relative to the working directory.
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(parts.path.removeprefix("/")) or ":memory:",
            "CONN_MAX_AGE": 60,
            "OPTIONS": SQLITE_OPTIONS,
        }
    if parts.scheme in ("postgres", "postgresql"):
        options: dict[str, Any] = dict(parse_qsl(parts.query))
        value = options.pop("pool_mode", "session")
        # Whether a pooler may give each transaction another session of the server.
        if value not in ("session", "transaction"):
            raise ImproperlyConfigured(
                f"pool_mode of DATABASE_URL is '{value}'. Give it session or transaction, as PgBouncer has it."
            )
        in_transactions = value == "transaction"
        threshold = options.get("prepare_threshold", "none" if in_transactions else "5")
        options["prepare_threshold"] = _prepare_threshold(threshold)
        # Statements can only be prepared where the server binds their parameters.
        options["server_side_binding"] = True
        hosts, ports = _database_hosts(parts.netloc)
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.removeprefix("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": options.pop("host", "") or hosts,
            "PORT": options.pop("port", "") or ports,
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            # Cursors and prepared statements belong to a session, which is another one after each transaction.
            "DISABLE_SERVER_SIDE_CURSORS": in_transactions,
            "OPTIONS": options,
        }
    raise ImproperlyConfigured(
        f"DATABASE_URL begins with '{parts.scheme}:'. Give it sqlite:///path/to/file or postgresql://user@host/name."
    )


def web_address(name: str, default: str) -> str:
    """Return the address that links begin with, such as `https://evals.example.org`, without a slash at its end."""
    address = read_text(name) or default
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ImproperlyConfigured(
            f"{name} is '{address}'. Write an address such as https://evals.example.org."
        )
    return address.rstrip("/")


def mail_server(name: str) -> dict[str, Any]:
    """Return Django's EMAIL_ settings of `smtp://user:password@host:587?tls=yes` or `smtps://…`; none if not set."""
    address = read_text(name)
    if not address:
        return {}
    wrong = ImproperlyConfigured(
        f"{name} isn't a valid mail server URL. Write smtp://user:password@host:587?tls=yes, or smtps://user:password@host."
    )
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise wrong from error
    options = dict(parse_qsl(parts.query))
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or options.keys() - {"tls"}:
        raise wrong
    encrypted = parts.scheme == "smtps"
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or (465 if encrypted else 25),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": encrypted,
        "EMAIL_USE_TLS": not encrypted and options.get("tls") == "yes",
    }


STORE_SECONDS = 5
"""A bucket's time to accept a connection, and to answer."""


LARGEST_UPLOAD = 1 << 30
"""Bytes that a bucket is sent in one request: of an upload in parts, a killed worker would leave some for good."""


def file_store(name: str) -> dict[str, Any]:
    """Return Django's settings of the store of kept files: `s3://bucket/prefix?endpoint=URL&region=NAME`, or a folder.

    Keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else from where Amazon's clients look for them.
    """
    address = read_text(name)
    if not address:
        return {"BACKEND": "runs.results.files.artifacts.LocalStore", "OPTIONS": {"allow_overwrite": True}}
    parts, options = urlsplit(address), dict(parse_qsl(urlsplit(address).query))
    unknown = sorted(options.keys() - {"endpoint", "region"})
    if parts.scheme != "s3" or not parts.hostname or unknown:
        raise ImproperlyConfigured(
            f"{name} is '{address}'. Write s3://bucket/prefix, with ?endpoint=URL&region=NAME where the store is not "
            "Amazon's, or leave it empty for the data directory."
        )
    # Loaded only with the S3 store, because the import is slow.
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config

    known = {
        "bucket_name": parts.netloc,
        "location": parts.path.strip("/"),
        "endpoint_url": options.get("endpoint"),
        "region_name": options.get("region"),
        "access_key": read_text("AWS_ACCESS_KEY_ID"),
        "secret_key": read_text("AWS_SECRET_ACCESS_KEY"),
        "client_config": Config(
            connect_timeout=STORE_SECONDS,
            read_timeout=STORE_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 2},
        ),
        "transfer_config": TransferConfig(multipart_threshold=LARGEST_UPLOAD),
    }
    set_options = {key: value for key, value in known.items() if value}
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": {"file_overwrite": True, **set_options}}
