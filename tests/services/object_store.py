"""An S3-compatible store on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


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
