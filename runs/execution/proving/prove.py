"""Proves one scenario by trials of a null agent and of its reference solution, graded as any trial is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluators.model import Score
from runs.execution.context import RunContext
from runs.execution.proving.agents import NOT_ASKED, Setting
from runs.execution.task import Task
from runs.execution.trial import carry_out
from runs.execution.trial_result import TrialResult
from runs.models.proof import Seal
from runs.queue.claims import Claim
from runs.warehouse.seals import ScenarioSeal
from scenarios.formats.parsed import FixtureFile
from scenarios.spec import ScenarioSpec

LONGEST_REASON = 2000
NO_SOLUTION = "No reference solution. Add solutions/{key}.sh to the suite."
NEEDS_JUDGE = "Needs a judge: nothing else decides this scenario."


@dataclass(frozen=True)
class Scenario:
    """A scenario to prove."""

    spec: ScenarioSpec
    load_files: Callable[[], tuple[FixtureFile, ...]]
    """Returns its files, without guidance."""
    solution: str | None = None
    """Its reference solution, as a shell script."""


def prove(scenario: Scenario, setting: Setting) -> ScenarioSeal:
    """Run both agents and return the scenario's seal; failures are part of it. Raises `DiskFull`."""
    spec = scenario.spec
    null = _run(scenario, setting.null_agent)
    held = held_gates(null)
    if (seal := _seal_of_null(null)) is not None:
        return ScenarioSeal(
            spec.key, seal, _reason_of_null(null), seal is not Seal.UNPROVED or _broke(null), held
        )
    if scenario.solution is None:
        return ScenarioSeal(spec.key, Seal.UNPROVED, NO_SOLUTION.format(key=spec.key), False, held)
    script = scenario.solution
    solved = _run(scenario, lambda: setting.solution(script))
    if solved.outcome == "pass":
        return ScenarioSeal(spec.key, Seal.PROVED, "", False, held)
    if _only_judge_is_missing(solved):
        return ScenarioSeal(spec.key, Seal.PROVED, "The judge was not asked.", False, held)
    return ScenarioSeal(spec.key, Seal.SOLUTION_FAILS, reason_of(solved), True, held)


def _run(scenario: Scenario, context: Callable[[], RunContext]) -> TrialResult:
    spec = scenario.spec
    claim = Claim(trial_id=0, run_id=0, token="", starts=0)

    def load() -> Task:
        return Task(claim, spec, scenario.load_files, context(), _never_stopped, lambda look: None)

    return carry_out(load, stopped=_never_stopped, name=f"proof of {spec.key}")


def _never_stopped() -> bool:
    return False


def _seal_of_null(null: TrialResult) -> Seal | None:
    """Return the seal that the null agent's trial decides; None if it failed, as it should."""
    if null.outcome == "fail":
        return None
    return Seal.NO_AGENT if null.outcome == "pass" else Seal.UNPROVED


def _reason_of_null(null: TrialResult) -> str:
    if null.outcome == "pass":
        return "An agent that does nothing passes. Add a gate that only the finished task fulfils."
    return NEEDS_JUDGE if _only_judge_is_missing(null) else reason_of(null)


def _broke(null: TrialResult) -> bool:
    return not _only_judge_is_missing(null)


def _only_judge_is_missing(result: TrialResult) -> bool:
    """Return whether everything passed except what a judge would decide."""
    if result.outcome != "error" or result.evaluation is None:
        return False
    return all(NOT_ASKED in score.error for score in result.evaluation.scores if score.error)


def held_gates(result: TrialResult) -> tuple[str, ...]:
    """Return the gates that passed, each with what it found."""
    return tuple(_named(score) for score in _gates(result) if score.passed)


def reason_of(result: TrialResult) -> str:
    """Return why a trial did not pass: its error, or what failed."""
    scores = result.evaluation.scores if result.evaluation else ()
    failed = [_named(score) for score in scores if score.passed is False]
    notes = [str(note) for note in result.detail.get("notes", ())]
    sentences = [result.error] if result.outcome == "error" else failed
    if result.timed_out:
        sentences = ["It ran into the scenario's time limit.", *sentences]
    elif result.exit_code:
        sentences = [f"It ended with exit code {result.exit_code}.", *sentences]
    return " ".join([*sentences, *notes])[:LONGEST_REASON]


def _named(score: Score) -> str:
    return f"{score.detail.get('name') or score.name}: {score.message}".rstrip(": ")


def _gates(result: TrialResult) -> tuple[Score, ...]:
    scores = result.evaluation.scores if result.evaluation else ()
    return tuple(score for score in scores if score.layer == "gates")
