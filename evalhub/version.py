"""Read the version from the newest heading of CHANGELOG.md."""

from __future__ import annotations

import re
from pathlib import Path


def read_version(changelog: Path) -> str:
    """Return the first `## 1.2.3` heading's version. Raises ValueError when there is none."""
    match = re.search(r"^## (\d+\.\d+\.\d+)", changelog.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ValueError(f"{changelog.name} has no heading with a version, such as '## 1.2.3'.")
    return match.group(1)
