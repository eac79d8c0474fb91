"""A folder for a suite to prove, beside work and artifacts of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def suite_folder(tmp_path: Path, settings: Any) -> Path:
    settings.WORK_DIR, settings.ARTIFACTS_DIR = tmp_path / "work", tmp_path / "artifacts"
    (tmp_path / "suite").mkdir()
    return tmp_path / "suite"
