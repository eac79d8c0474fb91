"""A client of the broker for health checks, by any address that Celery takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from evalhub.broker_address import BrokerAddress


@contextmanager
def connect_to_broker(address: BrokerAddress, seconds: float) -> Iterator[redis.Redis]:
    """Give a client of the broker that waits `seconds` at most and never retries. Raises `redis.RedisError`, `OSError`."""
    limits: dict[str, Any] = {
        "socket_connect_timeout": seconds,
        "socket_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
    }
    part = address.parts[0]
    if address.has_sentinels:
        with _master_client(address, limits, seconds) as client:
            yield client
        return
    if address.is_socket:
        # Celery's word for a Unix socket; Redis's own client has another.
        number = int(parse_qs(part.query).get("virtual_host", ["0"])[0])
        client = redis.Redis(unix_socket_path=part.path, db=number, password=part.password, **limits)
    else:
        client = redis.Redis.from_url(address.url, **limits, **address.tls)
    with client:
        yield client


@contextmanager
def _master_client(address: BrokerAddress, limits: dict[str, Any], seconds: float) -> Iterator[redis.Redis]:
    part = address.parts[0]
    options = {
        "db": int(part.path.strip("/") or 0),
        "username": unquote(part.username) if part.username else None,
        "password": unquote(part.password) if part.password else None,
    }
    kwargs = {**address.sentinel_options(seconds), "retry": Retry(NoBackoff(), 0)}
    sentinels = Sentinel(address.sentinels, sentinel_kwargs=kwargs)  # type: ignore[no-untyped-call]
    try:
        encrypted = {"ssl": True, **address.tls} if address.tls else {}
        client: redis.Redis = sentinels.master_for(  # type: ignore[no-untyped-call]
            address.master, **options, **limits, **encrypted
        )
        with client:
            yield client
    finally:
        sentinels.close()
