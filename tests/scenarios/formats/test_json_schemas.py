"""The JSON Schemas refuse what the readers refuse: samples of all tests of formats, valid and broken ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from posixpath import basename
from typing import Any

import pytest
import test_agent_skills_problems as skills
import test_agentv_problems as agentv
import test_agentv_versions as agentv_versions
import test_llm_tool_test_problems as llm_tool_test
import test_tool_forge_problems as tool_forge
from agent_skills_files import SAMPLES, case, evals, skill
from agentv_files import case as agentv_case
from agentv_files import upload as agentv_upload
from jsonschema import Draft202012Validator
from llm_tool_test_files import CONFIG, SHORT, upload
from tool_forge_files import FILE
from tool_forge_files import case as tool_forge_case

from scenarios.formats import detect_format, parse_files
from scenarios.formats.agent_skills.schemas import SCHEMAS as AGENT_SKILLS
from scenarios.formats.agentv.evaluator_reader import ALIASES, MODELS
from scenarios.formats.agentv.schemas import SCHEMAS as AGENTV
from scenarios.formats.llm_tool_test.schemas import SCHEMAS as LLM_TOOL_TEST
from scenarios.formats.parsed import Problem, ScenarioFileError
from scenarios.formats.text_files import read_toml
from scenarios.formats.tool_forge.schemas import SCHEMAS as TOOL_FORGE
from scenarios.formats.upload import decode_file

Files = Mapping[str, bytes]
BY_NAME = {each.name: each for each in (*LLM_TOOL_TEST, *TOOL_FORGE, *AGENTV, *AGENT_SKILLS)}
# fmt: off
UNSEEN = {
    **dict.fromkeys(("format/bad-regex", "format/bad-json-path", "format/bad-assertion"), "a language of its own inside a text"),
    "format/literal-secret": "a guess by names and by what keys of services look like",
    **dict.fromkeys(
        (
            "format/missing-fixture",
            "format/missing-file",
            "format/missing-rubric",
            "format/fixture-outside",
            "format/fixture-holds-scenario",
            "format/file-outside",
            "format/unreadable-include",
            "format/no-settings",
            "format/no-skill",
            "format/which-skill",
            "format/unknown-case",
        ),
        "depends on other files",
    ),
    **dict.fromkeys(("format/duplicate-scenario", "format/duplicate-criterion", "format/duplicate-suite"), "compares entries of a list or of other files"),
    "format/no-weight": "a sum",
    "format/repeated-key": "two spellings of a key are allowed one by one",
    "format/unknown-variable": "compares with `vars` of other places",
    "format/environment-variable": "may stand in any text",
    "format/empty-question": "depends on which files are guidelines",
    "format/no-criteria": "depends on what the file says for all cases",
}
# fmt: on
"""Problems that a schema can't see, and why. A schema that learns to see one must leave this list."""
UNSEEN_SAMPLES = {
    "a server with a header in two lines": "names and values of headers have patterns of their own",
    "a default that needs settings": "the kinds without settings are few, and only names",
    "a pattern": "a language of its own inside a text",
    "a schema": "a language of its own inside a value",
    "a negation of later versions": "depends on the file's version",
    "an image": "depends on the file's version",
    "a selection that isn't a glob": "a language of its own inside a text",
    "a glob that is none": "a language of its own inside a text",
    "an import of nothing": "the cases may be in the file itself",
    "should_trigger as text": "it may be the name of a skill of the upload",
}
"""Further samples that a schema can't refuse, and why."""


@cache
def validator(name: str) -> Draft202012Validator:
    document = BY_NAME[name].document()
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


def schema_of(path: str, content: bytes, value: Any) -> str:
    """Return the name of the schema for a file; empty for one that no test of formats breaks."""
    of_files = {"gates.yaml": "gates", ".agentv.yaml": "agentv-config", CONFIG: "llm-tool-test-config"}
    if name := of_files.get(basename(path)):
        return name
    if path.startswith("rubrics/"):
        return "rubric"
    format = detect_format(path, content)
    if isinstance(value, list) and format == "agentv":
        return "agentv-dataset"
    if format == "agent_skills" and basename(path) not in ("evals.json", "cases.json"):
        return "trigger-queries"
    return format.replace("_", "-")


def decode(path: str, content: bytes) -> Any:
    """Return a file's value, None for one that can't be decoded."""
    try:
        return (read_toml if path.endswith(".toml") else lambda data, file: decode_file(file, data))(
            content, path
        ).value
    except ScenarioFileError:
        return None


def found_in(files: Files, **options: Any) -> tuple[Problem, ...]:
    try:
        return tuple(lint for suite in parse_files(files, name="notetool", **options) for lint in suite.lints)
    except ScenarioFileError as error:
        return error.problems


def refuses(name: str, value: Any) -> bool:
    values = value if name == "agentv-dataset" else [value]
    return not all(validator(name).is_valid(each) for each in values)


def verdicts(files: Files, **options: Any) -> Iterator[tuple[str, bool, set[str]]]:
    """Yield each file with a schema: whether the schema refuses it, and the problems that the reader finds in it."""
    problems = found_in(files, **options)
    for path, content in files.items():
        value = decode(path, content)
        name = schema_of(path, content, value) if value is not None else ""
        if name in BY_NAME:
            ids = {
                each.id
                for each in problems
                if each.file == path and (not each.lint or each.id == "format/unknown-key")
            }
            yield f"{path} ({name})", refuses(name, value), ids


def as_bytes(files: Mapping[str, str | bytes]) -> Files:
    return {path: each if isinstance(each, bytes) else each.encode() for path, each in files.items()}


def broken_samples() -> Iterator[tuple[str, Files]]:
    tables = (llm_tool_test.REFUSED, llm_tool_test.REFUSED_ELSEWHERE, agentv.REFUSED)
    for name, row in chain.from_iterable(table.items() for table in tables):
        yield name, row[0]
    for name, (text, *_) in agentv_versions.REFUSED.items():
        yield name, {"one.yaml": text.encode()}
    for name, (files, _) in skills.BROKEN.items():
        yield name, as_bytes(files)
    for row in tool_forge.BROKEN_FILES:
        yield str(row.id), {FILE: row.values[0].encode()}
    for row in tool_forge.BROKEN_ASSERTIONS:
        yield str(row.id), {FILE: json.dumps([tool_forge_case(expect=row.values[0])]).encode()}


def server(text: str) -> Files:
    gates = "gates: [{type: no_transcript_errors}]"
    return {"a.yaml": f"name: a\ntask: x\ntarget: {{mcp: {{{text}}}}}\n{gates}\n".encode()}


# fmt: off
FURTHER = {
    "a server without any address": server("name: n"),
    "a server with two addresses": server("name: n, command: x, url: 'http://x/mcp'"),
    "a server with capitals": server("name: My_Server, command: x"),
    "a server of another protocol": server("name: n, url: 'ftp://x'"),
    "a command with headers": server("name: n, command: x, headers: {A: b}"),
    "a server with a header in two lines": server("name: n, url: 'http://x', headers: {A: \"b\\nC: d\"}"),
    "a null prompt": as_bytes(skill(evals(case(prompt=None)))),
    "an empty file name": as_bytes(skill(evals(case(files="")))),
    "a line without an id": {"qa.jsonl": b'{"input": "x", "criteria": "y"}\n{"id": "a", "input": "x", "criteria": "y"}\n'},
    "an empty mapping as the expected messages": agentv_case("expected_messages: {}"),
    "a list in a list of parts": agentv_case("expected_messages: [[]]"),
    "an empty input": {"one.yaml": b"evalcases: [{id: a, outcome: x, input_messages: }]\n"},
    "settings with a wrong type": upload(**{CONFIG: "[target]\nbinary = 7\n"}),
    "settings with half a price": upload(**{CONFIG: "[models.a]\ninput_cost_per_1k_tokens = 1.0\n"}),
    "patterns as text": agentv_upload(**{"evals/.agentv.yaml": "guideline_patterns: x\n"}),
    "a gate of a skill without its path": as_bytes(skill(evals(case()), **{"evals/gates.yaml": "gates: [{type: file_exists}]\n"})),
    "an empty key of a skill's gates": as_bytes(skill(evals(case()), **{"evals/gates.yaml": "gates: [{type: no_transcript_errors, timeout_secs: }]\n"})),
}
# fmt: on
# fmt: off
VALID = {
    "a server by its command": server("name: n, command: x"),
    "a server at its address": server("name: n, url: 'http://x/mcp', transport: http, headers: {A: b}, command: ''"),
    "llm-tool-test": upload(),
    "a short scenario": {"a.yaml": SHORT.encode()},
    "empty keys": {"a.yaml": f"{SHORT}tags:\nrun: {{max_turns: }}\nsetup:\nprotected:\n".encode()},
    "a scenario with the settings' tool": {
        "a.yaml": b"name: a\ntask: x\ntarget: from_config\ngates: [{type: file_exists, path: x}]\n",
        CONFIG: b'[target]\nbinary = "x"\n[tools.codex]\nname = "codex"\nmodels = ["a"]\n',
    },
    "an inline rubric": {
        "a.yaml": SHORT.replace(
            "gates:",
            "evaluation: {judge: {pass_threshold: 1, rubric: {criteria: [{id: a, weight: 1}]}}, gates: [",
        )
        .replace("}]\n", "}]}\n")
        .replace("[ [", "[")
        .encode()
    },
    "a judge that is off": {"a.yaml": b"name: a\ntask: x\ntarget: {binary: t}\nevaluation: {gates: [{type: file_exists, path: x}], judge: {enabled: false}}\n"},
    "a gate with its limit in either spelling": {
        "a.yaml": b"name: a\ntask: x\ntarget: {binary: t}\ngates: [{type: file_exists, path: x, timeout_secs: 1}, {type: file_exists, path: y, timeout_seconds: 2}]\n"
    },
    "agentv": agentv_upload(),
    "a tests file with everything short": {"one.yaml": b"tests:\n  - {id: a, input: x, criteria: y, assert: ['It is short.', {type: contains, value: z}, {type: latency, threshold: 9}]}\n"},
    "variables in the place of values": {
        "one.yaml": b"prompts: ['{{ question }}']\ndefault_test: {vars: {limit: 9, question: x, files: [a]}}\ntests: [{id: a, assert: [{type: latency, threshold: '{{ limit }}'}, {type: not-contains, value: z}]}]\n"
    },
    "either way to write a group": {FILE: json.dumps([tool_forge_case(expect={"toolsAcceptable": "a", "responseContainsAny": ["a", 1], "toolsCalled": "b", "toolParams": tool_forge.PARAM})]).encode()},
    "groups of triggers": {FILE: b'{"expectedTool": "a", "shouldRouteIdentically": [{"id": "a", "input": {"message": "m"}}], "shouldRouteDifferently": {"cases": null}}'},
    **{name: as_bytes(sample.files) for name, sample in SAMPLES.items()},
    **{f"a hint: {name}": row[0] for name, row in llm_tool_test.LINTS.items()},
}
# fmt: on
ALL_BROKEN = [*broken_samples(), *FURTHER.items()]


@pytest.mark.parametrize(("name", "files"), ALL_BROKEN, ids=[name for name, _ in ALL_BROKEN])
def test_a_schema_refuses_what_the_reader_refuses(name: str, files: Files) -> None:
    for path, refused, ids in verdicts(files):
        seen = ids - UNSEEN.keys()
        assert (path, refused) == (path, bool(seen) and name not in UNSEEN_SAMPLES), ids


@pytest.mark.parametrize("files", VALID.values(), ids=VALID)
def test_a_schema_refuses_no_valid_file(files: Files) -> None:
    found = list(verdicts(files))
    assert found
    for path, refused, ids in found:
        assert ids <= {"format/unknown-key"}
        assert (path, refused) == (path, bool(ids))


def test_the_lists_of_what_a_schema_cannot_see_name_nothing_else() -> None:
    ids = {id for _, files in ALL_BROKEN for _, _, found in verdicts(files) for id in found}
    two_files = {"format/duplicate-suite"}
    assert UNSEEN.keys() - two_files <= ids
    assert UNSEEN_SAMPLES.keys() <= {name for name, _ in ALL_BROKEN}


def test_every_kind_of_evaluator_has_a_model() -> None:
    for kind in (*MODELS, *ALIASES):
        text = f"tests: [{{id: a, input: x, criteria: y, assert: [{{type: '{kind}'}}]}}]\n"
        assert "format/unknown-evaluator" not in {each.id for each in found_in({"a.yaml": text.encode()})}
    (unknown,) = [each for each in found_in(agentv.evaluators("{type: zzz}")) if not each.lint]
    named = set(unknown.fix.removeprefix("Use one of ").rstrip(".").split(", "))
    assert {each.replace("_", "-") for each in named} == {each.replace("_", "-") for each in MODELS}


def test_descriptions_are_docstrings_of_fields() -> None:
    properties = BY_NAME["gates"].document()["properties"]
    assert properties["workspace"]["description"].startswith("A folder beside this file")
    judge = BY_NAME["llm-tool-test"].document()["$defs"]["Judge"]["properties"]
    assert judge["rubric"]["description"] == "A path or an inline rubric."


@pytest.mark.parametrize("name", BY_NAME)
def test_a_schema_refers_only_to_itself(name: str) -> None:
    document = BY_NAME[name].document()
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"] == f"{name}.json"
    assert document["title"] and document["description"].endswith(".")
    references = set(_references(document))
    assert {f"#/$defs/{key}" for key in document.get("$defs", ())} == references
    assert "x-reads-as" not in json.dumps(document)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["$ref"]] if isinstance(value.get("$ref"), str) else [])
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _references(each)
