"""Shared environment and files of helper processes."""

from __future__ import annotations

import os
from typing import BinaryIO

HELPER_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""The complete environment of each helper."""


def memory_file(content: bytes) -> BinaryIO:
    """Return an anonymous file, positioned at its start."""
    file = os.fdopen(os.memfd_create("evalhub"), "w+b")
    file.write(content)
    file.seek(0)
    return file
