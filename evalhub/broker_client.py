"""A client of the broker for health checks, by any address that Celery takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

import redis
from kombu import Connection
from redis.backoff import NoBackoff
from redis.retry import Retry

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
        options = {**address.transport_options(), **limits}
        with Connection(address.url, transport_options=options) as connection:
            yield connection.channel().client  # type: ignore[attr-defined]  # that of redis has one
        return
    if address.is_socket:
        # Celery's word for a Unix socket; Redis's own client has another.
        number = int(parse_qs(part.query).get("virtual_host", ["0"])[0])
        client = redis.Redis(unix_socket_path=part.path, db=number, password=part.password, **limits)
    else:
        client = redis.Redis.from_url(address.url, **limits, **address.tls)
    with client:
        yield client
