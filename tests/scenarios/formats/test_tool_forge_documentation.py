"""docs/formats/tool-forge.md names every field that the reader knows."""

import re
from pathlib import Path

import pytest

from evaluators.grading.assertions import ASSERTIONS
from scenarios.formats.tool_forge import case_models

TEXT = (Path(__file__).parents[3] / "docs/formats/tool-forge.md").read_text()
FIELDS = {
    field
    for model in vars(case_models).values()
    if getattr(model, "__module__", "") == case_models.__name__
    for field in getattr(model, "model_fields", ())
}


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_every_field_is_documented(field):
    assert re.search(rf"`[^`\n]*\b{field}\b", TEXT)


def test_assertions_are_listed_in_run_order():
    table = TEXT.partition("## The assertions")[2].partition("`toolParams` is a list")[0]
    documented = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert documented == list(ASSERTIONS)
