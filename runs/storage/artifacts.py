"""Files kept of trials, once for each content, under the data directory."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True)
class Kept:
    """A file that is kept: what the `Artifact` row says of it."""

    name: str
    sha256: str
    size: int
    media_type: str


def path_of(sha256: str) -> Path:
    """Return where the content with this hash lies."""
    return Path(f"{settings.ARTIFACTS_DIR}/{sha256[:2]}/{sha256}")


def keep(name: str, content: bytes, media_type: str = "text/plain") -> Kept:
    """Keep the content and return its row. The same content again costs no space."""
    sha256 = hashlib.sha256(content).hexdigest()
    path = path_of(sha256)
    if not _renewed(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written apart and renamed, so that no reader ever sees half of a file.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).rename(path)
    return Kept(name, sha256, len(content), media_type)


def _renewed(path: Path) -> bool:
    """Tell whether the content lies there; it counts as just written, so that `prune` leaves it until its row comes."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
