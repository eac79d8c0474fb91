"""What AgentV files come to."""

from __future__ import annotations

import pytest
from agentv_files import case, spec, suite

from evaluators.grading.assertions.expected_messages import ExpectedMessages
from evaluators.grading.assertions.tool_trajectory import ToolTrajectory
from evaluators.grading.evaluate import evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.judges.checklist_judge import ChecklistJudge
from evaluators.grading.judges.code_judge import CodeJudge
from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.scores.composite_evaluator import CodeAggregator, CompositeEvaluator, LlmAggregator
from evaluators.transcripts.traces import read_trace
from scenarios.spec import ScenarioSpec


def kinds(files: dict[str, bytes], key: str = "one") -> list[str]:
    return [one.type for one in spec(files, key).criteria.evaluators]


def test_it_reads_an_eval_file_as_a_suite():
    found = suite()
    assert (found.name, found.format, [one.key for one in found.scenarios]) == (
        "sums",
        "agentv",
        ["product", "script"],
    )
    assert found.lints == ()
    assert (found.targets_file, found.targets_text[:8]) == ("targets.yaml", "targets:")


def test_it_reads_a_case():
    found = spec()
    assert (found.description, found.conversation, found.target) == (
        "A simple one.",
        "talk-1",
        "default-agent",
    )
    assert (found.file, found.line, found.folder, found.fixture) == ("evals/sums.yaml", 11, "evals", None)
    criteria = found.criteria
    assert (criteria.expected_outcome, criteria.reference_answer, criteria.threshold) == (
        "It says 42.",
        "42",
        0.8,
    )


def test_prompts_include_files_and_agent_prompts_name_them():
    found = spec()
    assert found.prompt == 'What is in the table?\n\n<file path="data/table.csv">\na,b\n6,7\n</file>'
    assert found.agent_prompt == 'What is in the table?\n\n<file: path="data/table.csv">'


def test_guidelines_are_recognized_by_path():
    found = spec()
    assert found.input_files == ("evals/data/table.csv",)
    assert found.guidelines == ("docs/style.instructions.md",)
    assert "Write well" not in found.prompt


def test_a_conversation_is_marked_by_role_and_kept_for_chat():
    found = spec(key="script")
    assert found.prompt == "@[System]:\nBe brief.\n\n@[User]:\nAdd 1 and 2."
    assert found.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add 1 and 2."},
    )
    assert spec().messages == ()


def test_only_referenced_files_reach_the_worker():
    found = suite()
    assert [file.path for file in found.fixtures["files"]] == [
        "docs/style.instructions.md",
        "evals/data/table.csv",
        "evals/judges/check.py",
        "prompts-for-judges/strict.md",
    ]
    assert {one.bundle for one in found.scenarios} == {"files"}


def test_a_single_file_has_no_fixture():
    found = suite(case("note: x"))
    assert (found.name, found.fixtures, found.scenarios[0].bundle) == ("bundle", {}, None)


def test_a_case_inherits_evaluators_with_prompt_files():
    judge, calls = spec().criteria.evaluators
    assert isinstance(judge, LlmJudge)
    assert (judge.prompt, judge.prompt_file) == (
        "Be strict with {{candidate_answer}}.\n",
        "prompts-for-judges/strict.md",
    )
    assert isinstance(calls, ExpectedMessages)


def test_own_evaluators_and_threshold_override_the_suites():
    criteria = spec(key="script").criteria
    code, trajectory = criteria.evaluators
    assert isinstance(code, CodeJudge)
    assert (code.name, code.script, code.cwd, code.weight) == ("sum", "python check.py", "evals/judges", 2)
    assert isinstance(trajectory, ToolTrajectory)
    assert criteria.threshold == 1.0


def test_expected_calls_keep_the_input_as_it_is_written():
    (message,) = spec().criteria.expected_messages
    assert message.tool_calls[0].input == {"a": 6, "b": 7, "c": None}


CALLS = "expected_messages: [{role: assistant, tool_calls: [{tool: a}]}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", ["llm_judge"], id="none: a judge"),
        pytest.param("evaluators: []", ["llm_judge"], id="an empty list: a judge"),
        pytest.param(CALLS, ["expected_messages"], id="expected calls alone"),
        pytest.param(CALLS + "\nexecution: {expected_messages: off}", ["llm_judge"], id="switched off"),
        pytest.param(CALLS + "\nexecution: {expected_messages: false}", ["llm_judge"], id="switched off by false"),
        pytest.param(CALLS + "\nevaluators: [llm_judge]", ["llm_judge", "expected_messages"], id="after the listed"),
        pytest.param(CALLS + "\nevaluators: [{type: expected_messages, weight: 3}, llm_judge]", ["expected_messages", "llm_judge"], id="listed already"),
        pytest.param("rubrics: [Is short]", ["rubric"], id="rubrics alone"),
        pytest.param("rubrics: [Is short]\nevaluators: [llm_judge]", ["rubric", "llm_judge"], id="rubrics first"),
        pytest.param("rubrics: [Is short]\nevaluators: [{type: rubric, rubrics: [x]}]", ["rubric", "rubric"], id="two rubrics"),
        pytest.param("evaluator: expected_messages", ["expected_messages"], id="another default kind"),
        pytest.param("evaluators: [{type: code, script: sh x}]", ["code_judge"], id="an older name"),
        pytest.param("evaluators: [{type: expected_tool_calls}]\nexecution: {target: t}", ["expected_messages"], id="another"),
    ],
)  # fmt: skip
def test_a_case_has_evaluators(text, expected):
    assert kinds(case(text)) == expected


def test_combined_evaluators_have_unique_names():
    text = "rubrics: [Is short]\nevaluators: [{type: rubric, rubrics: [x]}]"
    assert [one.label for one in spec(case(text), "one").criteria.evaluators] == ["rubric", "rubric 2"]


def test_an_added_evaluator_has_weight_1_and_its_type_as_name():
    added = spec(case(CALLS), "one").criteria.evaluators[0]
    assert (added.label, added.weight) == ("expected_messages", 1.0)


def test_execution_of_the_case_goes_before_its_evaluators():
    text = (
        "evaluators: [{type: code_judge, script: sh x}]\nexecution: {evaluators: [llm_judge], target: mine}"
    )
    found = spec(case(text), "one")
    assert [one.type for one in found.criteria.evaluators] == ["llm_judge"]
    assert found.target == "mine"


def test_rubrics_are_texts_or_mappings():
    text = "rubrics:\n- Is short\n- {id: polite, description: Is polite, weight: 2.5, required: false}"
    (rubric,) = spec(case(text), "one").criteria.evaluators
    assert isinstance(rubric, ChecklistJudge)
    assert rubric.label == "rubric"
    assert [(item.id, item.description, item.weight, item.required) for item in rubric.rubrics] == [
        ("rubric-1", "Is short", 1.0, True),
        ("polite", "Is polite", 2.5, False),
    ]


def test_an_llm_judge_with_rubrics_checks_them():
    text = "evaluators: [{type: llm_judge, name: j, rubrics: [Is short]}, {type: rubric, rubrics: [Is kind]}]"
    assert [(one.type, one.label) for one in spec(case(text), "one").criteria.evaluators] == [
        ("rubric", "j"),
        ("rubric", "rubric"),
    ]


def test_a_judge_may_have_inline_prompt_model_and_trace():
    text = (
        "evaluators: [{type: llm_judge, prompt: 'Grade {{candidate_answer}}', model: m, include_trace: true}]"
    )
    (judge,) = spec(case(text), "one").criteria.evaluators
    assert isinstance(judge, LlmJudge)
    assert (judge.prompt, judge.model, judge.include_trace) == ("Grade {{candidate_answer}}", "m", True)


def test_composites_nest_and_aggregate():
    text = """evaluators:
- type: composite
  name: gate
  evaluators:
    - type: composite
      evaluators: [llm_judge, llm_judge]
      aggregator: {type: llm_judge, prompt: 'Sum up {{EVALUATOR_RESULTS_JSON}}'}
  aggregator: {type: code_judge, path: [node, sum.js], cwd: .}"""
    found = suite(case(text))
    (outer,) = found.scenarios[0].criteria.evaluators
    assert isinstance(outer, CompositeEvaluator)
    assert isinstance(outer.aggregator, CodeAggregator)
    assert outer.aggregator.path == "node sum.js"
    (inner,) = outer.evaluators
    assert isinstance(inner, CompositeEvaluator)
    assert isinstance(inner.aggregator, LlmAggregator)
    assert [one.label for one in inner.evaluators] == ["llm_judge", "llm_judge 2"]


def test_read_values_survive_storage():
    for one in suite().scenarios:
        assert ScenarioSpec.model_validate(one.model_dump(mode="json", exclude_defaults=True)) == one


def test_a_read_case_can_be_evaluated():
    trace = read_trace([{"type": "tool_call", "name": "a", "input": {"x": 1}}])
    criteria = spec(case(CALLS), "one").criteria
    assert evaluate(criteria, TrialEvidence(trace)).outcome == "pass"
