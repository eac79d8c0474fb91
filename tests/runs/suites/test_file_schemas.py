"""The examples fit the JSON Schemas that their first lines name, and the repository holds the schemas as they are."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from evaluators.tool_use.tool import Tool
from runs.suites.file_schemas import FILE_SCHEMAS, schema_text
from runs.suites.suite_page.editor_views import NEW_FILE
from runs.targets.model_server.script import read_script
from scenarios.formats.llm_tool_test.draft import draft_scenario
from scenarios.formats.parsed import ScenarioFileError
from scenarios.formats.upload import decode_file
from scenarios.tool_descriptions import read_descriptions
from tests.schema_files import FOLDER, texts

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "scenarios/examples"
LINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
IN_JSON = {"cities.golden.json": "tool-forge", "evals.json": "agent-skills"}
"""Schemas of the examples without comments."""
WITHOUT_SCHEMA = {
    "expected.yaml": "the expected outcomes of the examples, read by a test",
    "tools.json": "a registry of tools, which programs write",
    "seed-manifest.json": "the data of a program under test, of any shape",
}


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(name)))


def value_of(path: Path) -> Any:
    return decode_file(path.name, path.read_bytes()).value


def data_files() -> list[Path]:
    endings = (".yaml", ".yml", ".json", ".jsonl", ".toml")
    found = (path for path in EXAMPLES.rglob("*") if path.suffix in endings)
    return sorted(path for path in found if path.name not in WITHOUT_SCHEMA)


@pytest.mark.parametrize("path", data_files(), ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_an_example_fits_the_schema_that_it_names(path: Path) -> None:
    if path.suffix == ".json":
        name = IN_JSON[path.name]
    else:
        line = LINE.match(path.read_text())
        assert line, "The first line names no schema."
        named = (path.parent / line[1]).resolve()
        assert named.parent == FOLDER
        name = named.stem
    assert [error.message for error in validator(name).iter_errors(value_of(path))] == []


OF_OTHERS = {
    "tests/agentv/specimens/4.42.4/*.eval.yaml": "agentv",
    "tests/agentv/specimens/4.42.4/targets.yaml": "targets",
    "tests/files/cases/06/public/*.yaml": "llm-tool-test",
    "tests/files/cases/06/public/rubrics/*.yaml": "rubric",
}
"""Files that other people wrote, or that other programs read."""


@pytest.mark.parametrize(("pattern", "name"), OF_OTHERS.items())
def test_files_of_others_fit_their_schema(pattern: str, name: str) -> None:
    paths = sorted(ROOT.glob(pattern))
    assert paths
    for path in paths:
        assert [error.message for error in validator(name).iter_errors(value_of(path))] == []


def test_the_examples_use_most_schemas() -> None:
    named = {Path(line[1]).stem for path in data_files() if (line := LINE.match(path.read_text()))}
    assert named == {"llm-tool-test", "rubric", "targets", "gates", "agentv", "tool-descriptions"}


def test_every_file_without_a_schema_is_an_example() -> None:
    assert WITHOUT_SCHEMA.keys() <= {path.name for path in EXAMPLES.rglob("*")}


def test_the_repository_holds_the_schemas() -> None:
    """`make snapshot` writes them."""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*")} == texts()


def test_the_manual_lists_the_schemas() -> None:
    text = (ROOT / "docs/formats/editors.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE) == list(FILE_SCHEMAS)


def test_drafts_fit_the_schema_of_scenarios() -> None:
    tool = Tool(binary="git", command_pattern=r"git (\S+)", env={"A": "b"})
    drafts = (NEW_FILE, draft_scenario("a", "Do it.", tool, ["git x"], "trial 1"))
    for text in drafts:
        value = decode_file("a.yaml", text.encode()).value
        assert [error.message for error in validator("llm-tool-test").iter_errors(value)] == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FILE_SCHEMAS)
def test_a_schema_is_one(name: str) -> None:
    document = json.loads(schema_text(name))
    Draft202012Validator.check_schema(document)
    assert document["$id"] == f"{name}.json"
    assert FILE_SCHEMAS[name].patterns


SCRIPTS = {
    "turns: [{command: ls}, {tool: a/b, arguments: {x: 1}}, {text: Done.}]\n": True,
    "sessions: [{when: x, turns: [{fault: 500, times: 2}]}]\nusage: {input_tokens: 5}\n": True,
    "turns: [{command: 7}]\n": False,
    "turns: [{fault: slow}]\n": False,
    "turns: [{txt: Done.}]\n": False,
    "sessions: [{when: x}]\n": False,
}
DESCRIPTIONS = {
    "instructions: x\ntools: {a: Adds., b: {description: B, arguments: {c: d}}}\n": True,
    "tools: {a: 7}\n": False,
    "tools: {a: {arguments: [x]}}\n": False,
    "tool: {a: b}\n": False,
}


@pytest.mark.parametrize(("text", "is_valid"), SCRIPTS.items())
def test_a_models_script(text: str, is_valid: bool) -> None:
    _compare("model-script", read_script, text, is_valid)


@pytest.mark.parametrize(("text", "is_valid"), DESCRIPTIONS.items())
def test_descriptions_of_tools(text: str, is_valid: bool) -> None:
    _compare("tool-descriptions", read_descriptions, text, is_valid)


def _compare(name: str, read: Any, text: str, is_valid: bool) -> None:
    assert validator(name).is_valid(decode_file("a.yaml", text.encode()).value) == is_valid
    if is_valid:
        read(text.encode(), "a.yaml")
    else:
        with pytest.raises(ScenarioFileError):
            read(text.encode(), "a.yaml")
