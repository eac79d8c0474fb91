"""Proofs of scenarios: real commands in real workspaces, with an agent that does nothing and with a solution."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.model import Complete, Completion, CompletionRequest
from runs.engine.proof_agents import JudgeBudget
from runs.engine.workspace.workspace import own_area
from runs.models import Run, ScenarioProof, SuiteProof, Target, Trial
from runs.models.proof import Seal
from runs.results.validations import ScenarioValidation, validations_of, validations_of_proof
from runs.suites.proofs_api import prove_here, setting_of, stored_scenarios
from runs.suites.prove import prove
from scenarios.bundles import read_path
from scenarios.imports import import_files
from scenarios.models import SuiteVersion
from tests.builders import make_project
from tests.greeting import CONTAINS, EXISTS, SUCCEEDS, greeting

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

HELLO = "echo hello > out.txt\n"
JUDGE = "  judge:\n    enabled: true\n    rubric: rubric.yaml\n    pass_threshold: 0.7\n"
RUBRIC = "criteria:\n  - id: tone\n    weight: 1.0\n    description: Is it kind?\n"
README = "- type: file_exists\n  path: README.md\n"


def upload(folder: Path, text: str, solution: str | None = None, **files: str) -> SuiteVersion:
    """Return the stored suite of one scenario, whose workspace begins with a README."""
    named = {"greet.yaml": text, "templates/repo/README.md": "Hello.\n", "rubric.yaml": RUBRIC, **files}
    if solution is not None:
        named["solutions/greet.sh"] = solution
    return import_folder(folder, named)


def import_folder(folder: Path, files: Mapping[str, str]) -> SuiteVersion:
    """Return the stored suite of these files, written to a folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (imported,) = import_files(read_path(folder), project=make_project(), by=None)
    return imported.version


def proved(version: SuiteVersion) -> ScenarioValidation:
    (seal,) = validations_of_proof(prove_here(version, by=None))
    return seal


def test_a_scenario_with_its_solution_is_proved(suite_folder, settings):
    seal = proved(upload(suite_folder, greeting(CONTAINS, SUCCEEDS), HELLO))
    assert (seal.seal, seal.reason, seal.is_failure, seal.held) == (Seal.PROVED, "", False, ())
    assert list(own_area(settings.WORK_DIR).iterdir()) == []
    assert not Run.objects.exists()
    assert not Trial.objects.exists()
    assert not settings.ARTIFACTS_DIR.exists()


def test_a_scenario_that_passes_without_an_agent_is_named(suite_folder):
    seal = proved(upload(suite_folder, greeting(README), HELLO))
    assert (seal.seal, seal.is_failure) == (Seal.NO_AGENT, True)
    assert seal.reason.startswith("An agent that does nothing passes.")


def test_a_gate_that_holds_before_the_agent_is_named(suite_folder):
    seal = proved(upload(suite_folder, greeting(README, EXISTS), HELLO))
    (held,) = seal.held
    assert seal.seal == Seal.PROVED
    assert held.startswith("file_exists: ")
    assert "README.md" in held


def test_a_scenario_without_a_solution_is_unproved(suite_folder):
    seal = proved(upload(suite_folder, greeting(EXISTS)))
    assert (seal.seal, seal.is_failure) == (Seal.UNPROVED, False)
    assert seal.reason == "No reference solution. Add solutions/greet.sh to the suite."


def test_a_solution_that_fails_says_which_gate(suite_folder):
    seal = proved(upload(suite_folder, greeting(CONTAINS), "echo goodbye > out.txt\nexit 3\n"))
    assert (seal.seal, seal.is_failure) == (Seal.SOLUTION_FAILS, True)
    assert seal.reason.startswith("It ended with exit code 3. file_contains: ")


def test_a_solution_beyond_the_time_limit_fails(suite_folder):
    text = greeting(CONTAINS) + "run:\n  timeout_secs: 1\n"
    seal = proved(upload(suite_folder, text, "sleep 30\n"))
    assert seal.seal == Seal.SOLUTION_FAILS
    assert "time limit" in seal.reason


def test_a_setup_that_fails_leaves_a_scenario_unproved(suite_folder):
    text = greeting(EXISTS) + "setup:\n  commands: [exit 4]\n"
    seal = proved(upload(suite_folder, text, HELLO))
    assert (seal.seal, seal.is_failure) == (Seal.UNPROVED, True)
    assert "The setup command 'exit 4' failed" in seal.reason


def test_what_only_a_judge_decides_needs_a_judge(suite_folder):
    seal = proved(upload(suite_folder, greeting(README) + JUDGE, HELLO))
    assert (seal.seal, seal.is_failure) == (Seal.UNPROVED, False)
    assert (
        seal.reason == "Needs a judge: nothing else decides this scenario. Prove it with a budget for judges."
    )


def test_gates_prove_a_scenario_that_is_judged_too(suite_folder):
    seal = proved(upload(suite_folder, greeting(EXISTS) + JUDGE, HELLO))
    assert (seal.seal, seal.reason) == (Seal.PROVED, "The judge was not asked.")


def test_a_solution_has_the_environment_of_an_agent(suite_folder):
    text = greeting(EXISTS).replace("  binary: git\n", "  binary: git\n  env: {WORD: hello}\n")
    script = (
        'test "$WORD" = hello && test "$LLM_TOOL_TEST_SCENARIO" = greet && test -f README.md && touch out.txt'
    )
    assert proved(upload(suite_folder, text, script)).seal == Seal.PROVED


EVAL_CASE = """
evalcases:
  - id: greet
    expected_outcome: Greets.
    input_messages: [{role: user, content: Greet.}]
    expected_messages: [{role: assistant, content: Hello.}]
    execution:
      evaluators:
        - {name: looks, type: tool_trajectory, mode: in_order, expected: [{tool: look}]}
        - {name: grade, type: llm_judge}
"""
ANSWER = """echo '{"text": "Hello.", "trace": [{"type": "tool_call", "name": "look", "input": {}}]}'\n"""


def test_a_solution_answers_an_eval_case_with_its_calls(suite_folder):
    (suite_folder / "solutions").mkdir()
    (suite_folder / "greet.eval.yaml").write_text(EVAL_CASE)
    (suite_folder / "solutions/greet.sh").write_text(ANSWER)
    (imported,) = import_files(read_path(suite_folder), project=make_project(), by=None)
    seal = proved(imported.version)
    assert (seal.seal, seal.reason) == (Seal.PROVED, "The judge was not asked.")


def test_a_changed_solution_needs_another_proof(suite_folder):
    version = upload(suite_folder, greeting(EXISTS), HELLO)
    keys = {each.pk: "greet" for each in version.scenario_versions.all()}
    prove_here(version, by=None)
    assert [each.seal for each in validations_of(version, keys)[0].values()] == [Seal.PROVED]
    version.solutions = {"greet": "exit 1\n"}
    assert [each.reason for each in validations_of(version, keys)[0].values()] == ["Not proved yet."]


def test_a_later_proof_replaces_the_earlier_one(suite_folder):
    version = upload(suite_folder, greeting(EXISTS), HELLO)
    prove_here(version, by=None)
    last = prove_here(version, by=None)
    assert list(SuiteProof.objects.all()) == [last]
    assert ScenarioProof.objects.count() == 1


def reply(score: float) -> str:
    assessment = {
        "scores": {"tone": score},
        "weighted_score": score,
        "confidence": 1,
        "issues": [],
        "highlights": [],
    }
    return json.dumps(assessment)


def judge_of_prompts(*, kind_words: tuple[str, ...], cost_usd: float | None = 0.01) -> Complete:
    """Return a judge that finds answers with one of these words kind."""

    def judge(request: CompletionRequest) -> Completion:
        score = 0.9 if any(word in request.user for word in kind_words) else 0.1
        return Completion(text=reply(score), model="judge", cost_usd=cost_usd)

    return judge


@pytest.mark.parametrize(
    ("words", "max_usd", "cost", "seal", "reason", "spent"),
    [
        (("hello-there",), 1.0, 0.01, Seal.PROVED, "", 0.03),
        (("",), 1.0, 0.01, Seal.NO_AGENT, "passes an agent that does nothing, with an empty answer", 0.01),
        (("kettle",), 1.0, 0.01, Seal.NO_AGENT, "with a nonsense answer", 0.02),
        (("never",), 1.0, 0.01, Seal.SOLUTION_FAILS, "Judge score 0.10, needs 0.70", 0.03),
        (("hello-there",), 0.005, 0.01, Seal.UNPROVED, "The judges' budget of $0.0050 is spent.", 0.01),
        (("hello-there",), 1.0, None, Seal.UNPROVED, "The judge reports no cost", 0.0),
    ],
    ids=["good", "passes empty", "passes nonsense", "fails all", "too dear", "no cost"],
)
def test_a_judge_with_a_budget_must_fail_empty_and_nonsense(
    suite_folder, words, max_usd, cost, seal, reason, spent
):
    version = upload(suite_folder, greeting(README) + JUDGE, "echo hello-there\n")
    budget = JudgeBudget(judge_of_prompts(kind_words=words, cost_usd=cost), max_usd)
    (stored,) = stored_scenarios(version)
    found = prove(stored.scenario, replace(setting_of(version), judge=budget))
    assert found.seal == seal
    assert reason in found.reason
    assert budget.spent == pytest.approx(spent)


def test_a_stored_proof_asks_the_projects_judge(suite_folder):
    version = upload(suite_folder, greeting(README) + JUDGE, HELLO)
    definition = {"name": "kind", "provider": "mock", "response": reply(0.9), "cost_usd": 0.02}
    project = version.suite.project
    Target.objects.create(project=project, name="kind", provider="mock", definition=definition)
    project.judge = "kind"
    project.save()
    proof = prove_here(version, by=None, max_usd=0.5)
    assert [each.seal for each in validations_of_proof(proof)] == [Seal.NO_AGENT]
    assert (proof.max_usd, proof.cost_usd) == (0.5, 0.02)
