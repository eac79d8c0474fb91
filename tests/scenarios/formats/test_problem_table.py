"""docs/formats/problems.md names every problem that the code can tell, and no other."""

import re
from pathlib import Path

from evaluators.grading.evaluate import Criteria
from scenarios.archives import MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, MAX_MEMBERS, MAX_TOTAL_BYTES
from scenarios.formats.llm_tool_test import scenario_models
from scenarios.formats.parsed import shown_fields
from scenarios.formats.text_files import MAX_BYTES

ROOT = Path(__file__).parents[3]
FORMATS = ROOT / "docs/formats"


def ids_in_code():
    files = [*(ROOT / "scenarios").glob("*.py"), *(ROOT / "scenarios/formats").rglob("*.py")]
    files.append(ROOT / "runs/sandbox/reader_program.py")
    return {id for file in files for id in re.findall(r'"((?:format|bundle)/[a-z-]+)"', file.read_text())}


def test_every_problem_is_documented():
    documented = re.findall(
        r"^\| `((?:format|bundle)/[a-z-]+)` \|", (FORMATS / "problems.md").read_text(), re.M
    )
    assert sorted(documented) == sorted(ids_in_code())


def test_the_limits_are_documented():
    text = (FORMATS / "problems.md").read_text()
    for limit in (MAX_BYTES, MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, MAX_TOTAL_BYTES):
        assert f"{limit // (1024 * 1024)} MiB" in text
    assert f"{MAX_MEMBERS:,} files" in text


def test_every_field_of_llm_tool_test_is_documented():
    text = (FORMATS / "llm-tool-test.md").read_text()
    known = [model for model in vars(scenario_models).values() if hasattr(model, "model_fields")]
    # What lints read of a scenario is no file.
    models = [model for model in known if model is not Criteria]
    bases = {base for model in models for base in model.__mro__[1:]}
    fields = {field for model in models if model not in bases for field in shown_fields(model)}
    assert {field for field in fields if not re.search(rf"`[^`\n]*\b{field}\b", text)} == set()
