"""The name of this process in the registry of workers, and in the trials that it runs."""

from __future__ import annotations

import os
import secrets
import socket

from evalhub.lib.limits import LONGEST_NAME

_HEX_BYTES = 3


class OwnName:
    """Host and process number; more if another worker has the same.

    Containers that share the host's network have its name, and their workers often the same number.
    """

    def __init__(self) -> None:
        self._more = ""

    def __str__(self) -> str:
        return f"{socket.gethostname()[: LONGEST_NAME // 2]}:{os.getpid()}{self._more}"

    def extend(self) -> None:
        """Make the name one that no other worker has."""
        self._more = f":{secrets.token_hex(_HEX_BYTES)}"

    def reset(self) -> None:
        """Return to host and process number."""
        self._more = ""


own_name = OwnName()
"""The name of this process."""


def worker_name() -> str:
    """Return this process's name."""
    return str(own_name)
