"""One broken AgentV upload for every problem: its line, its place, its sentence and its id."""

from __future__ import annotations

import pytest
from agentv_files import EVAL, FILES, case, changed, upload

from scenarios.formats import parse_files
from scenarios.formats.parsed import Problem, ScenarioFileError


def problems_of(files: dict[str, bytes]) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioFileError) as refused:
        parse_files(files, name="bundle")
    return refused.value.problems


def evaluators(text: str) -> dict[str, bytes]:
    return case(f"evaluators:\n- {text}")


def message(text: str) -> dict[str, bytes]:
    return {
        "one.yaml": f"evalcases:\n  - id: one\n    outcome: good\n    input_messages:\n      - {text}\n".encode()
    }


FIRST = "evalcases[0]"
LISTED = "evalcases[0].evaluators[0]"

# fmt: off
REFUSED = {
    "no cases": ({"one.yaml": b"$schema: agentv-eval-v2\n"}, 1, "", "The file has no eval cases.", "format/missing-field"),
    "an empty list of cases": ({"one.yaml": b"evalcases: []\n"}, 1, "", "Add 'evalcases:'", "format/missing-field"),
    "cases that aren't a list": ({"one.yaml": b"dataset: x\nevalcases: {a: 1}\n"}, 2, "evalcases", "must be a list, not a mapping.", "format/wrong-type"),
    "a case that is a word": ({"one.yaml": b"evalcases:\n  - word\n"}, 2, FIRST, "must be a mapping, not text.", "format/wrong-type"),
    "no id": ({"one.yaml": b"evalcases:\n  - input_messages: [{role: user, content: x}]\n    outcome: y\n"}, 2, f"{FIRST}.id", "The key 'id' is missing.", "format/missing-field"),
    "an id that is a number": ({"one.yaml": b"evalcases:\n  - id: 7\n    outcome: y\n    input_messages: [{role: user, content: x}]\n"}, 2, f"{FIRST}.id", "must be text, not a number.", "format/wrong-type"),
    "no messages": ({"one.yaml": b"evalcases:\n  - id: a\n    outcome: y\n"}, 2, f"{FIRST}.input_messages", "is missing.", "format/missing-field"),
    "an empty list of messages": ({"one.yaml": b"evalcases:\n  - id: a\n    input_messages: []\n    outcome: x\n"}, 3, f"{FIRST}.input_messages", "must not be empty.", "format/empty-value"),
    "messages without text": (message("role: user"), 4, f"{FIRST}.input_messages", "no question besides guidelines", "format/empty-question"),
    "an unknown role": (message("{role: human, content: x}"), 5, f"{FIRST}.input_messages[0].role", "must be 'system', 'user', 'assistant' or 'tool'.", "format/unknown-value"),
    "a content that is a number": (message("{role: user, content: 7}"), 5, f"{FIRST}.input_messages[0].content", "must be text or a list of parts, not a number.", "format/wrong-type"),
    "a part that is a number": (message("{role: user, content: [7]}"), 5, f"{FIRST}.input_messages[0].content[0]", "must be a mapping, not a number.", "format/wrong-type"),
    "a part without a value": (message("{role: user, content: [{type: file}]}"), 5, f"{FIRST}.input_messages[0].content[0].value", "needs text in 'value'.", "format/missing-field"),
    "a file that is not there": (message("{role: user, content: [{type: file, value: gone.md}]}"), 5, f"{FIRST}.input_messages[0].content[0].value", "The file 'gone.md' is not in the upload.", "format/missing-file"),
    "a file outside": (message("{role: user, content: [{type: file, value: ../../etc/passwd}]}"), 5, f"{FIRST}.input_messages[0].content[0].value", "is outside the upload.", "format/file-outside"),
    "a user who calls tools": (message("{role: user, content: x, tool_calls: [{tool: a}]}"), 5, f"{FIRST}.input_messages[0].tool_calls", "A message of role 'user' cannot have 'tool_calls'", "format/misplaced-tool-calls"),
    "a call without a tool": (message("{role: assistant, content: x, tool_calls: [{input: 1}]}"), 5, f"{FIRST}.input_messages[0].tool_calls[0].tool", "The key 'tool' is missing.", "format/missing-field"),
    "an unknown evaluator": (evaluators("{type: llm_jugde}"), 6, f"{LISTED}.type", "Did you mean 'llm_judge'?", "format/unknown-evaluator"),
    "an unheard-of evaluator": (evaluators("{type: zzz}"), 6, f"{LISTED}.type", "Use one of llm_judge, rubric,", "format/unknown-evaluator"),
    "an evaluator without a type": (evaluators("{name: x}"), 6, LISTED, "has no 'type'.", "format/missing-field"),
    "an evaluator that is a number": (evaluators("7"), 6, LISTED, "must be a mapping with a 'type', not a number.", "format/wrong-type"),
    "a default that needs settings": (case("evaluator: tool_trajectory"), 5, f"{FIRST}.evaluator", "needs settings", "format/unknown-evaluator"),
    "a negative weight": (evaluators("{type: llm_judge, weight: -1}"), 6, f"{LISTED}.weight", "must be at least 0", "format/out-of-range"),
    "an unknown mode": (evaluators("{type: tool_trajectory, mode: any}"), 6, f"{LISTED}.mode", "must be 'any_order', 'in_order', 'exact', 'subset' or 'superset'.", "format/unknown-value"),
    "a rule that is unknown": (evaluators("{type: tool_trajectory, mode: exact, expected: [{tool: a, argsMatch: some}]}"), 6, f"{LISTED}.expected[0].argsMatch", "must be superset, subset, exact or ignore, or a list", "format/wrong-value"),
    "arguments that are a list": (evaluators("{type: tool_trajectory, mode: exact, expected: [{tool: a, args: [1]}]}"), 6, f"{LISTED}.expected[0].args", "must be a mapping, not a list.", "format/wrong-type"),
    "a negative duration": (evaluators("{type: tool_trajectory, mode: exact, expected: [{tool: a, max_duration_ms: -1}]}"), 6, f"{LISTED}.expected[0].max_duration_ms", "must be at least 0", "format/out-of-range"),
    "the input of a step": (evaluators("{type: tool_trajectory, mode: exact, expected: [{tool: a, input: {b: 1}}]}"), 6, f"{LISTED}.expected[0].input", "'input' decides the verdict in other versions", "format/unsupported-key"),
    "no minimums": (evaluators("{type: tool_trajectory, mode: any_order}"), 6, LISTED, "needs the key 'minimums'.", "format/missing-field"),
    "no sequence": (evaluators("{type: tool_trajectory, mode: exact}"), 6, LISTED, "needs the key 'expected'.", "format/missing-field"),
    "a negative minimum": (evaluators("{type: tool_trajectory, mode: any_order, minimums: {a: -1}}"), 6, f"{LISTED}.minimums.a", "must be at least 0", "format/out-of-range"),
    "half a minimum": (evaluators("{type: tool_trajectory, mode: any_order, minimums: {a: 1.5}}"), 6, f"{LISTED}.minimums.a", "must be a whole number", "format/wrong-type"),
    "a step without a tool": (evaluators("{type: tool_trajectory, mode: exact, expected: [{name: a}]}"), 6, f"{LISTED}.expected[0].tool", "The key 'tool' is missing.", "format/missing-field"),
    "a prompt file that is not there": (evaluators("{type: llm_judge, prompt: judges/strict.md}"), 6, f"{LISTED}.prompt", "The file 'judges/strict.md' is not in the upload", "format/missing-file"),
    "no script": (evaluators("{type: code_judge}"), 6, f"{LISTED}.script", "The key 'script' is missing.", "format/missing-field"),
    "a folder that is not there": (evaluators("{type: code_judge, script: sh x, cwd: gone}"), 6, f"{LISTED}.cwd", "The file 'gone' is not in the upload", "format/missing-file"),
    "a folder outside": (evaluators("{type: code_judge, script: sh x, cwd: ../..}"), 6, f"{LISTED}.cwd", "is outside the upload.", "format/file-outside"),
    "an empty rubric": (evaluators("{type: rubric, rubrics: []}"), 6, f"{LISTED}.rubrics", "must not be empty.", "format/empty-value"),
    "a rubric that is a number": (case("rubrics: [7]"), 5, f"{FIRST}.rubrics[0]", "must be text or a mapping, not a number.", "format/wrong-type"),
    "a rubric twice": (case("rubrics: [{id: a, description: x}, {id: a, description: y}]"), 5, f"{FIRST}.rubrics", "Duplicate rubric 'a'.", "format/duplicate-criterion"),
    "rubrics without weight": (case("rubrics: [{id: a, description: x, weight: 0}]"), 5, f"{FIRST}.rubrics", "All rubrics have weight 0.", "format/no-weight"),
    "an unknown aggregator": (evaluators("{type: composite, evaluators: [llm_judge], aggregator: {type: max}}"), 6, f"{LISTED}.aggregator.type", "Unknown aggregator 'max'.", "format/unknown-aggregator"),
    "an aggregator's weight": (evaluators("{type: composite, evaluators: [llm_judge], aggregator: {type: weighted_average, weights: {a: -1}}}"), 6, f"{LISTED}.aggregator.weights.a", "must be at least 0", "format/out-of-range"),
    "a member of a composite": (evaluators("{type: composite, evaluators: [{type: zzz}]}"), 6, f"{LISTED}.evaluators[0].type", "Unknown evaluator 'zzz'.", "format/unknown-evaluator"),
    "a threshold above 1": (case("execution: {threshold: 80}"), 5, f"{FIRST}.execution.threshold", "must be at most 1, not 80.", "format/out-of-range"),
    "expected_messages as a word": (case("execution: {expected_messages: maybe}"), 5, f"{FIRST}.execution.expected_messages", "must be true or false, not text.", "format/wrong-type"),
}
# fmt: on


@pytest.mark.parametrize(("files", "line", "where", "sentence", "id"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_with_line_and_sentence(files, line, where, sentence, id):
    (problem,) = [problem for problem in problems_of(files) if not problem.lint]
    assert (problem.file, problem.line, problem.where, problem.id) == ("one.yaml", line, where, id)
    assert sentence in f"{problem.what} {problem.fix}"
    assert problem.what[-1] in ".?"
    assert problem.fix[-1] in ".?"


def test_a_duplicate_id_is_refused_with_both_lines():
    (problem,) = problems_of(upload(changed("id: script", "id: product")))
    assert (problem.file, problem.line, problem.id) == ("evals/sums.yaml", 30, "format/duplicate-scenario")
    assert "Duplicate case 'product', first in line 11." in problem.what


def test_two_files_of_one_name_are_refused():
    problems = problems_of(upload(**{"evals/other.yaml": EVAL}))
    assert [(one.file, one.line, one.id) for one in problems] == [
        ("evals/other.yaml", 3, "format/duplicate-suite"),
        ("evals/sums.yaml", 3, "format/duplicate-suite"),
    ]


def test_all_problems_of_a_file_are_reported_at_once():
    broken = (
        changed("id: script", "id: 7")
        .replace("mode: in_order", "mode: sideways")
        .replace("role: user\n", "role: boss\n")
        .replace("threshold: 0.8", "threshold: 8")
        .replace("prompts-for-judges/strict.md", "gone.md")
    )
    assert sorted(problem.id for problem in problems_of(upload(broken))) == [
        "format/missing-file",
        "format/out-of-range",
        "format/unknown-value",
        "format/unknown-value",
        "format/wrong-type",
    ]


@pytest.mark.parametrize(
    "entry",
    [
        "api_key: sk-" + "a" * 20,
        "apiKey: plain",
        "headers: {Authorization: Bearer abcdefghijkl}",
        "env: {SERVICE_TOKEN: abc}",
        "args: [ghp_" + "a" * 30 + "]",
    ],
)
def test_a_secret_in_a_targets_file_is_refused_unquoted(entry):
    text = f"targets:\n  - name: t\n    provider: azure\n    {entry}\n"
    (problem,) = problems_of(upload(**{"targets.yaml": text}))
    assert (problem.file, problem.line, problem.id) == ("targets.yaml", 4, "format/literal-secret")
    assert "${{ " in problem.fix
    assert entry.split(": ", 1)[1].strip("{}[]") not in str(problem)


def test_references_and_addresses_are_allowed_in_targets():
    text = "targets:\n  - {name: t, api_key: '${{ KEY }}', endpoint: https://x.example, model: m}\n"
    (suite,) = parse_files(upload(**{"targets.yaml": text}), name="b")
    assert suite.targets_text == text


def test_the_nearest_targets_file_is_used():
    (suite,) = parse_files(upload(**{"evals/.agentv/targets.yaml": "targets: []\n"}), name="b")
    assert suite.targets_file == "evals/.agentv/targets.yaml"


def test_a_broken_targets_file_is_reported_with_its_line():
    (problem,) = problems_of(upload(**{"targets.yaml": "targets: [\n"}))
    assert (problem.file, problem.id) == ("targets.yaml", "format/not-yaml")


GOOD = '{"id": "a", "outcome": "x", "input_messages": [{"role": "user", "content": "Hi"}]}\n'


def test_a_dataset_names_the_line_of_every_mistake():
    text = GOOD + GOOD.replace('"a"', "7") + GOOD.replace('"a"', '"c"').replace("user", "boss")
    problems = problems_of({"qa.jsonl": text.encode()})
    assert [(one.line, one.where, one.id) for one in problems] == [
        (2, "[1].id", "format/wrong-type"),
        (3, "[2].input_messages[0].role", "format/unknown-value"),
    ]


def test_every_invalid_line_of_a_dataset_is_reported():
    problems = problems_of({"qa.jsonl": (GOOD + "{\n\n" + "nope\n").encode()})
    assert [(one.line, one.where, one.id) for one in problems] == [
        (2, "[1]", "format/not-json"),
        (4, "[2]", "format/not-json"),
    ]


def test_problems_of_a_sidecar_have_its_lines():
    beside = "dataset: qa\nexecution:\n  evaluators:\n    - {type: zzz}\n"
    problems = problems_of({"d/qa.jsonl": GOOD.encode(), "d/qa.yaml": beside.encode()})
    assert [(one.file, one.line, one.id) for one in problems] == [
        ("d/qa.yaml", 4, "format/unknown-evaluator")
    ]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a: [", b"- - - -", b"[" * 500])
def test_no_content_of_a_file_breaks_the_reading(name, content):
    try:
        suites = parse_files(upload(**{name: content}), name="b")
    except ScenarioFileError as refused:
        assert refused.problems
    else:
        assert suites
