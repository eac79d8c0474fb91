"""Files as people have them: in UTF-16, with a byte order mark, empty, or of another program."""

from __future__ import annotations

import codecs
import json

import pytest

from scenarios.commands import quote_lines
from scenarios.formats import parse_files
from scenarios.formats.other_programs import SETTINGS
from scenarios.formats.parsed import Problem, ScenarioFileError
from tests.scenarios.formats.agent_skills_files import TWO, case, evals, parse, skill

SUITE = "name: ü\ntarget: {binary: t}\ntask: x\ngates: [{type: file_exists, path: x}]\n"
CASES = json.dumps([{"id": "ü", "input": {"message": "m"}, "expect": {"toolsCalled": ["x"]}}])
ENCODINGS = {
    "UTF-8 with a mark": "utf-8-sig",
    "UTF-16 with a mark": "utf-16",
    "UTF-16 little-endian": "utf-16-le",
    "UTF-16 big-endian": "utf-16-be",
}


def refused(**files: bytes) -> list[Problem]:
    with pytest.raises(ScenarioFileError) as caught:
        parse_files(files, name="folder")
    return list(caught.value.problems)


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize(("file", "text"), [("a.yaml", SUITE), ("a.json", CASES)])
def test_other_encodings_are_read(file, text, encoding):
    (suite,) = parse_files({file: text.encode(encoding)}, name="a")
    assert [scenario.key for scenario in suite.scenarios] == ["ü"]


def test_a_mark_of_the_other_order_is_read():
    (suite,) = parse_files({"a.yaml": codecs.BOM_UTF16_BE + SUITE.encode("utf-16-be")}, name="a")
    assert suite.scenarios[0].key == "ü"


def test_problems_in_another_encoding_quote_their_lines():
    content = SUITE.replace("file_exists", "file_exist").encode("utf-16")
    (problem,) = refused(**{"a.yaml": content})
    assert (problem.line, problem.id) == (4, "format/unknown-gate")
    (shown,) = quote_lines([problem], {"a.yaml": content})
    assert any("file_exist" in line.text for line in shown.lines)


@pytest.mark.parametrize("content", [b"", b"# nothing here\n", b"---\n", codecs.BOM_UTF8], ids=repr)
@pytest.mark.parametrize("file", ["config.yaml", "empty.json"])
def test_an_empty_file_beside_others_is_no_obstacle(file, content):
    if file.endswith(".json") and content.startswith((b"#", b"-")):
        content = b"null"
    (suite,) = parse_files({"a.yaml": SUITE.encode(), file: content}, name="a")
    assert suite.scenarios[0].key == "ü"


def test_a_lone_empty_file_is_refused():
    (problem,) = refused(**{"config.yaml": b""})
    assert problem.id == "format/empty-file"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("prompts: [p]\nproviders: [x]\ntests: [{vars: {a: b}}]\n", "a promptfoo configuration"),
        ("prompts: [p]\nproviders: [x]\ntests: file://cases.csv\n", "a promptfoo configuration"),
        ("prompts: [p]\nproviders: [x]\nextensions: [file://h.js:f]\ntests: [{vars: {a: b}}]\n", "a promptfoo configuration"),
        ("target: x\nprompts: ['{{ a | upper }}']\ntests: file://c.jsonl\n", "a promptfoo configuration"),
        ("prompts: ['{{ a | upper }}']\ntests: [{id: b, vars: {a: b}}]\n", "a promptfoo configuration"),
        ("tests: [{id: b, assert: [{type: javascript, value: x}]}]\n", "a promptfoo configuration"),
        ("defaultTest: {}\ntests: [{id: b, input: x, criteria: c}]\n", "a promptfoo configuration"),
        ("evaluateOptions: {repeat: 2}\ntests: [{id: b, input: x, criteria: c}]\n", "a promptfoo configuration"),
        ("skill: a\nmetrics: [{name: m}]\ntasks: ['tasks/*.yaml']\n", "a waza eval"),
        ("name: a\nstimuli: [{name: b, prompt: c, graders: [{type: prompt}]}]\n", "a Vally eval"),
        ('{"type": "weighted_checklist", "checklist": [{"name": "a", "max_score": 5}]}', "a Tessl scenario"),
        ('{"sessionId": "s", "projectHash": "p", "startTime": "t"}\n', "a Gemini CLI session"),
    ],
)  # fmt: skip
def test_a_refusal_names_what_was_recognised(text, what):
    (problem,) = refused(**{"dir/a.yaml": text.encode()})
    assert (problem.file, problem.id) == ("dir/a.yaml", "format/no-scenario")
    assert problem.what == f"Not read yet: {what}."
    assert "docs/" in problem.fix


@pytest.mark.parametrize(
    ("text", "what"), [("targets: [{name: a}]", "a targets file"), ("criteria: [{id: a}]", "a rubric")]
)
def test_a_file_that_belongs_beside_a_suite_says_so(text, what):
    (problem,) = refused(**{"a.yaml": text.encode()})
    assert problem.what == f"This is {what}, no scenario."


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        ("a/task.toml", 'version = "1.0"\n[verifier]\ntimeout_sec = 120.0\n', "a Harbor task"),
        ("evals/config.yml", "schema_version: 1\nharbor: {n_attempts: 3}\n", SETTINGS),
        ("r.xml", '<?xml version="1.0"?>\n<test-run id="2" result="Failed">', "NUnit's results"),
        ("r.trx", '<?xml version="1.0"?>\n<TestRun id="a" xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010">', "TRX, the results of .NET's tests"),
    ],
)  # fmt: skip
def test_files_are_recognised_by_their_text_and_place(path, text, what):
    (problem,) = refused(**{path: text.encode()})
    assert problem.what == f"Not read yet: {what}."


def test_another_programs_file_beside_cases_is_a_hint():
    files = skill(evals(case(assertions=TWO)), **{"evals/config.yml": "schema_version: 1\nharbor: {}\n"})
    (suite,) = parse(files)
    assert [(lint.file, lint.what) for lint in suite.lints if lint.id == "format/unread-file"] == [
        ("evals/config.yml", f"Not read yet: {SETTINGS}.")
    ]
