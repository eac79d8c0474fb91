"""Which files of a bundle are AgentV's, and what comes with them."""

from __future__ import annotations

import json

import pytest
from agentv_files import EVAL, case, changed, lints, spec, suite, upload

from scenarios.formats import agentv, companions, parse_files
from scenarios.formats.upload import decode_file

CASE = {"id": "a", "outcome": "good", "input_messages": [{"role": "user", "content": "Hi"}]}


def dataset(*cases: object, **more: str) -> dict[str, bytes]:
    text = "\n\n".join(json.dumps(one) for one in cases)
    return {"d/qa.jsonl": text.encode(), **{f"d/{name}": value.encode() for name, value in more.items()}}


def test_it_reads_a_jsonl_dataset_with_the_line_of_each_case():
    found = suite(dataset(CASE, {**CASE, "id": "b"}))
    assert [(one.key, one.line) for one in found.scenarios] == [("a", 1), ("b", 3)]


def test_a_sidecar_sets_the_defaults_of_a_dataset():
    beside = (
        "dataset: questions\ndescription: d\nevaluator: llm_judge\nexecution: {target: t, threshold: 0.5}\n"
    )
    found = suite(dataset(CASE, **{"qa.yaml": beside}))
    assert (found.name, found.scenarios[0].target, found.scenarios[0].criteria.threshold) == (
        "questions",
        "t",
        0.5,
    )
    assert found.fixtures == {}


def test_jsonl_logs_are_not_datasets():
    files = {**case("note: x"), "log.jsonl": b'{"type": "tool_call"}\n', "broken.jsonl": b"{\n"}
    assert [one.name for one in parse_files(files, name="b")] == ["one"]


def test_each_eval_file_is_a_suite_named_after_it():
    text = next(iter(case("note: x").values()))
    found = parse_files({"a/x.yaml": text, "b/x.yaml": text, "b/y.eval.yaml": text}, name="b")
    assert [one.name for one in found] == ["a/x", "b/x", "y.eval"]


def test_eval_files_are_never_given_to_agents():
    text = next(iter(case("note: x").values()))
    found = parse_files({"x.yaml": text, "y.yaml": text, "z.txt": b"z"}, name="b")
    assert [[file.path for file in one.fixtures["files"]] for one in found] == [["z.txt"], ["z.txt"]]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("x.yaml", "$schema: agentv-eval-v2\nevalcases: []", True),
        ("x.yaml", "$schema: agentv-eval-v2", True),
        ("x.yml", "evalcases: []", True),
        ("x.json", '{"evalcases": []}', False),
        ("x.yaml", "$schema: agentv-config-v2", False),
    ],
)
def test_it_is_recognized_by_cases_or_schema(path, text, expected):
    assert agentv.matches(path, decode_file(path, text.encode()).value) is expected


def test_a_single_file_names_its_companions():
    named = companions("sums.yaml", EVAL.encode())
    assert {"data/table.csv", "docs/style.instructions.md", "prompts-for-judges/strict.md", "judges"} <= set(
        named
    )
    assert {".agentv.yaml", ".agentv/config.yaml", "targets.yaml", "check.py"} <= set(named)


@pytest.mark.parametrize(
    ("files", "id"),
    [
        (case("extra: 1"), "format/unknown-key"),
        (case("evaluators: [{type: llm_judge, promt: x}]"), "format/unknown-key"),
        (case("evaluators: [llm_judge, llm_judge]"), "format/duplicate-evaluator"),
        (case("evaluators: [{type: llm_judge, name: score}]"), "format/duplicate-evaluator"),
        (case("evaluators: [{type: llm_judge, prompt: Be strict.}]"), "format/judge-without-answer"),
        (case("evaluators: [{type: code_judge, script: python gone.py}]"), "format/missing-script"),
        (upload(changed("    expected_outcome: It says 42.\n", "").replace('content: "42"', "content: ''").replace("prompts-for-judges/strict.md", '"{{question}}"').replace("      prompt:", "      model: x #")), "format/no-expectation"),
        (upload(changed("            value: What is in the table?", "            value: What?\n          - {type: image, url: x}")), "format/unknown-part"),
        (upload(**{"evals/data/table.csv": b"\xff\xfe"}), "format/binary-file"),
        (upload(**{"evals/.agentv.yaml": "guideline_patterns: ['**/*.md']\nmore: 1\n"}), "format/unknown-key"),
    ],
)  # fmt: skip
def test_probable_mistakes_are_lints(files, id):
    assert id in lints(files)


def test_a_binary_file_is_named_in_the_prompt():
    found = spec(upload(**{"evals/data/table.csv": b"\xff\xfe"}))
    assert found.prompt.endswith('<file: path="data/table.csv">')
    assert found.input_files == ("evals/data/table.csv",)
