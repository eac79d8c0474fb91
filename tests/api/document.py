"""The OpenAPI document as it is stored: reading it is quicker than building it in every process that collects tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
"""What evalhub serves, which test_openapi.py checks."""
