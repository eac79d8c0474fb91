"""docs/api.md names every operation, and every parser of streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.transcripts import PARSERS
from tests.api.document import DOCUMENT

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
OPERATIONS = [(method, path) for path, each in DOCUMENT["paths"].items() for method in each]
BELOW_A_TRIAL = "/trials/{trial_id}/"


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_is_described(method, path):
    if path.startswith(BELOW_A_TRIAL):
        assert f"`/{path.removeprefix(BELOW_A_TRIAL)}`" in TEXT
    else:
        assert f"`{method.upper()} {path}`" in TEXT


def test_every_parser_is_named():
    assert f"Parsers: {', '.join(PARSERS)}." in TEXT
