"""Write anew what every preset says, and the examples' hashes: `python -m tests.presets [pytest's arguments]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.presets.pinned_files import WRITES

if __name__ == "__main__":
    os.environ[WRITES] = "yes"
    sys.exit(pytest.main(["-q", str(Path(__file__).parent), *sys.argv[1:]]))
