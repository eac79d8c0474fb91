"""What every program that starts or surrounds a command is started with."""

from __future__ import annotations

import os
from typing import BinaryIO

HELPER_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""The whole environment of every helper."""


def memory_file(content: bytes) -> BinaryIO:
    """Return a file that has no name, at its beginning."""
    file = os.fdopen(os.memfd_create("evalhub"), "w+b")
    file.write(content)
    file.seek(0)
    return file
