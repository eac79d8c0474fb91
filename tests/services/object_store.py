"""An S3-compatible store on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from evalhub import environment

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


def use_bucket(settings: Any, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Store files in this bucket; `address` is an EVALHUB_STORE."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("EVALHUB_STORE", address)
    settings.STORAGES = {**settings.STORAGES, "artifacts": environment.file_store("EVALHUB_STORE")}


@contextmanager
def bucket(name: str, port: int = 0) -> Iterator[str]:
    """Serve a bucket; give the options that follow `s3://bucket/prefix` in EVALHUB_STORE."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        )
        client.create_bucket(Bucket=name)
        yield f"?endpoint={endpoint}&region=us-east-1"
    finally:
        server.stop()


@contextmanager
def silent_store() -> Iterator[str]:
    """Accept connections and never answer; give the options of EVALHUB_STORE."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield f"?endpoint=http://127.0.0.1:{server.getsockname()[1]}&region=us-east-1"


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve a store written by hand; give the options of EVALHUB_STORE."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"?endpoint=http://127.0.0.1:{server.server_port}&region=us-east-1"
        server.shutdown()
