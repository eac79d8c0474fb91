"""Runs every conformance case of the folder that `EVALHUB_VECTORS` names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import agentv, llm_tool_test, tool_forge
from tests.conformance.operators import differences

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("EVALHUB_VECTORS") or ROOT / "../shared/vectors")
ADAPTERS = (llm_tool_test, agentv, tool_forge)
AREAS = {area: run for adapter in ADAPTERS for area, run in adapter.AREAS.items()}
PENDING = frozenset().union(*(adapter.PENDING for adapter in ADAPTERS)) - AREAS.keys()

if not FOLDER.is_dir():
    pytest.skip(f"There are no conformance cases in {FOLDER}.", allow_module_level=True)


def _cases() -> list[Any]:
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        for case in json.loads(file.read_text(encoding="utf-8")):
            pending = case["area"] in PENDING
            marks = [pytest.mark.xfail(strict=True, raises=KeyError, reason="not yet")] if pending else []
            found.append(pytest.param(case, id=f"{case['area']}:{case['id']}", marks=marks))
    return found


@pytest.mark.parametrize("case", _cases())
def test_it_conforms(case: dict[str, Any]) -> None:
    run = AREAS[case["area"]]
    assert differences(case["expected"], run(case["input"]), run) == []
