"""Judges in eval files of AgentV: placeholders of their prompts, and those without settings."""

from __future__ import annotations

import pytest

from evaluators.grading.evaluate import evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import Transcript
from scenarios.formats import parse_files
from scenarios.formats.parsed import ParsedSuite, ScenarioFileError
from tests.evaluators.agentv_samples import Judge

PROMPT = """\
metadata: {team: core, days: [1]}
prompts: [Refund?]
tests:
  - id: a
    criteria: Polite
    metadata: {row: 7, days: [2]}
    assert:
      - type: llm-rubric
        prompt: "META {{ metadata_json }} RUBRICS {{ rubrics_json }} DIFF {{file_changes}}. Grade {{ output }}"
"""
RUBRICS = "    rubrics: [{id: kind, outcome: Is kind}]\n"


def suite(text: str) -> ParsedSuite:
    (found,) = parse_files({"a.eval.yaml": text.encode()}, name="folder")
    return found


def ask_judge(text: str) -> list[str]:
    judge = Judge(['{"score": 1}'])
    (scenario,) = suite(text).scenarios
    evaluate(scenario.criteria, TrialEvidence(Transcript(), answer="Yes.", exit_code=0, complete=judge))
    return [request.user for request in judge.asked]


@pytest.mark.parametrize(
    ("more", "rubrics", "empty"),
    [
        ("", "", ["rubrics_json", "file_changes"]),
        (RUBRICS, '[{"id":"kind","outcome":"Is kind"}]', ["file_changes"]),
    ],
    ids=["no rubrics", "rubrics"],
)
def test_a_judges_prompt_gets_metadata_and_rubrics(more, rubrics, empty):
    prompt = next(text for text in ask_judge(PROMPT + more) if text.startswith("META"))
    assert prompt.startswith(
        f'META {{"team":"core","days":[1,2],"row":7}} RUBRICS {rubrics} DIFF . Grade <data-'
    )
    lints = [one for one in suite(PROMPT + more).lints if one.id == "format/empty-placeholder"]
    assert [(one.line, one.where) for one in lints] == [(9, "tests[0].assert[0].prompt")] * len(empty)
    assert {one.what.split("}}")[0].split("{{")[1] for one in lints} == set(empty)


def test_only_a_case_whose_judges_name_them_has_values():
    plain = PROMPT.replace("META {{ metadata_json }} RUBRICS {{ rubrics_json }} DIFF {{file_changes}}.", "")
    assert suite(plain).scenarios[0].criteria.prompt_values == {}
    assert list(suite(PROMPT).scenarios[0].criteria.prompt_values) == ["metadata_json"]


BARE = """\
tests:
  - id: a
    input: Refund?
    criteria: Is polite
    assert:
      - Is short
      - {type: llm-rubric, metric: manners}
"""


def test_a_bare_rubric_judges_by_the_criteria():
    (scenario,) = suite(BARE).scenarios
    assert [(one.type, one.label) for one in scenario.criteria.evaluators][1] == ("llm_judge", "manners")
    assert "[[ ## expected_outcome ## ]]\nIs polite" in ask_judge(BARE)[1]
    assert suite(BARE).lints == ()


def test_a_bare_rubric_without_criteria_is_a_hint():
    (lint,) = suite(BARE.replace("    criteria: Is polite\n", "")).lints
    assert (lint.id, lint.fix) == ("format/no-expectation", "Add 'criteria:'.")


@pytest.mark.parametrize("entry", ["{type: rubrics}", "{type: llm-rubric, value: []}"])
def test_other_rubrics_need_statements(entry):
    with pytest.raises(ScenarioFileError):
        suite(BARE.replace("{type: llm-rubric, metric: manners}", entry))
