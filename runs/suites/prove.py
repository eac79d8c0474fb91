"""Prove one scenario by trials of a null agent and of its reference solution, graded as any trial is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalhub.lib.limits import LONGEST_REASON
from evaluators.model import Score
from runs.engine.context import RunContext
from runs.engine.proof_agents import NONSENSE, NOT_ASKED, ProofSetting
from runs.engine.recording import TrialResult
from runs.engine.task import Task
from runs.engine.trial import carry_out
from runs.models.proof import Seal
from runs.results.validations import ScenarioValidation, count_validations
from runs.workers.claims import Claim
from scenarios.formats.parsed import FixtureFile
from scenarios.spec import ScenarioSpec

NO_SOLUTION = "No reference solution. Add solutions/{key}.sh to the suite."
NEEDS_JUDGE = "Needs a judge: nothing else decides this scenario. Prove it with a budget for judges."
PASSES_GATES = "An agent that does nothing passes. Add a gate that only the finished task fulfils."
PASSES_JUDGE = "The judge passes an agent that does nothing, with {name} answer. Make its rubric stricter."


@dataclass(frozen=True)
class ProvedScenario:
    """A scenario to prove."""

    spec: ScenarioSpec
    load_files: Callable[[], tuple[FixtureFile, ...]]
    """Returns its files, without guidance."""
    solution: str | None = None
    """Its reference solution, as a shell script."""


def prove(scenario: ProvedScenario, setting: ProofSetting) -> ScenarioValidation:
    """Run the agents and return the scenario's seal; failures are part of it. Raises `DiskFull`."""
    spec = scenario.spec
    null = _run(scenario, setting.idle_agent)
    held = tuple(_name_score(score) for score in _gates(null) if score.passed)
    judged = setting.judge is not None and _only_judge_is_missing(null)
    judged_seal = _judged_seal(scenario, setting, held) if judged else _seal_of_null(spec.key, null, held)
    if judged_seal is not None:
        return judged_seal
    if scenario.solution is None:
        return ScenarioValidation(spec.key, Seal.UNPROVED, NO_SOLUTION.format(key=spec.key), False, held)
    script = scenario.solution
    solved = _run(scenario, lambda: setting.solution(script))
    if setting.judge is not None and _only_judge_is_missing(solved):
        solved = _run(scenario, lambda: setting.solution(script, judged=True))
        if solved.outcome == "error":
            return ScenarioValidation(spec.key, Seal.UNPROVED, failure_reason(solved), False, held)
    changed = tuple(solved.detail.get("executed_changes", ()))
    if solved.outcome == "pass" or _only_judge_is_missing(solved):
        reason = "" if solved.outcome == "pass" else "The judge was not asked."
        return ScenarioValidation(spec.key, Seal.PROVED, reason, False, held, changed)
    return ScenarioValidation(spec.key, Seal.SOLUTION_FAILS, failure_reason(solved), True, held)


def _judged_seal(
    scenario: ProvedScenario, setting: ProofSetting, held: tuple[str, ...]
) -> ScenarioValidation | None:
    """Return the seal of answers that a judge must fail; None if it failed them."""
    key = scenario.spec.key
    for name, answer in (("an empty", ""), ("a nonsense", NONSENSE)):
        result = _run(scenario, partial(setting.idle_agent, answer, judged=True))
        if result.outcome == "pass":
            return ScenarioValidation(key, Seal.NO_AGENT, PASSES_JUDGE.format(name=name), True, held)
        if result.outcome == "error":
            return ScenarioValidation(key, Seal.UNPROVED, failure_reason(result), False, held)
    return None


def _run(scenario: ProvedScenario, context: Callable[[], RunContext]) -> TrialResult:
    spec = scenario.spec
    claim = Claim(trial_id=0, run_id=0, token="", starts=0)

    def load() -> Task:
        run_context = context()
        judged = spec.model_copy(update={"criteria": run_context.criteria_of(spec.criteria)})
        return Task(claim, judged, scenario.load_files, run_context, _never_stopped, lambda look: None)

    return carry_out(load, stopped=_never_stopped, name=f"proof of {spec.key}")


def _never_stopped() -> bool:
    return False


def _seal_of_null(key: str, null: TrialResult, held: tuple[str, ...]) -> ScenarioValidation | None:
    """Return the seal that the null agent's trial decides; None if it failed, as it should."""
    if null.outcome == "fail":
        return None
    if null.outcome == "pass":
        return ScenarioValidation(key, Seal.NO_AGENT, PASSES_GATES, True, held)
    if _only_judge_is_missing(null):
        return ScenarioValidation(key, Seal.UNPROVED, NEEDS_JUDGE, False, held)
    return ScenarioValidation(key, Seal.UNPROVED, failure_reason(null), True, held)


def _only_judge_is_missing(result: TrialResult) -> bool:
    """Return whether everything passed except what a judge would decide."""
    if result.outcome != "error" or result.evaluation is None:
        return False
    return all(NOT_ASKED in score.error for score in result.evaluation.scores if score.error)


def failure_reason(result: TrialResult) -> str:
    """Return why a trial did not pass: its error, or what failed."""
    scores = result.evaluation.scores if result.evaluation else ()
    failed = [_name_score(score) for score in scores if score.passed is False]
    notes = [str(note) for note in result.detail.get("notes", ())]
    sentences = [result.error] if result.outcome == "error" else failed
    if result.execution.timed_out:
        sentences = ["It ran into the scenario's time limit.", *sentences]
    elif result.execution.exit_code:
        sentences = [f"It ended with exit code {result.execution.exit_code}.", *sentences]
    return " ".join([*sentences, *notes])[:LONGEST_REASON]


def _name_score(score: Score) -> str:
    return f"{score.detail.get('name') or score.name}: {score.message}".rstrip(": ")


def _gates(result: TrialResult) -> tuple[Score, ...]:
    scores = result.evaluation.scores if result.evaluation else ()
    return tuple(score for score in scores if score.layer == "gates")


def proof_lines(validations: Sequence[ScenarioValidation]) -> list[str]:
    """Return a line for each scenario, with its notes indented below, and their sum."""
    lines = []
    for seal in validations:
        sign = "✓" if seal.is_proved else ("✗" if seal.is_failure else "–")
        lines.append(f"{sign} {seal.key}: {seal.seal.label}")
        lines += [f"    {note}" for note in seal.notes]
    return [*lines, f"{count_validations(validations)}." if validations else "No scenarios."]


def validations_json(validations: Sequence[ScenarioValidation]) -> list[dict[str, Any]]:
    """Return the seals as JSON."""
    return [
        {
            "scenario": seal.key,
            "seal": seal.seal.value,
            "reason": seal.reason,
            "is_failure": seal.is_failure,
            "held": list(seal.held),
        }
        for seal in validations
    ]
