"""Generate trial results in the shape of real ones."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from evaluators.grading.evaluate import Evaluation, decide_outcome
from evaluators.model import AgentResult, Json, Judging, Score, Usage
from runs.engine.recording import TrialResult
from tests.history.catalogue import (
    GATES,
    HIGHLIGHTS,
    ISSUES,
    JUDGE,
    LOST,
    PASSED,
    REASONS,
    RUBRIC,
    THRESHOLD,
    TOOLS,
    UNCHANGED,
    UNWRITTEN,
    WRONG,
    DemoTool,
)
from tests.history.sessions import VARIANTS, DemoSession, make_session
from tests.history.story import Chapter, chance

ERROR_SHARE = 0.015
_ERRORS = (
    ("provider", "The target did not answer within 120 seconds. Raise timeout_seconds, or check its log."),
    ("transcript", "Line 41 of the output isn't JSON, so the agent's stream can't be read."),
)
_WEIGHTS = {str(each["id"]): float(str(each["weight"])) for each in RUBRIC["criteria"]}


@dataclass(frozen=True)
class DemoTrial:
    """A trial's result and its shared session."""

    result: TrialResult
    session: DemoSession | None
    judging: Judging | None = None


def demo_trial(chapter: Chapter, place: int, difficulty: float, rng: Random) -> DemoTrial:
    """Return one trial of a run."""
    if rng.random() < ERROR_SHARE:
        kind, sentence = rng.choice(_ERRORS)
        return DemoTrial(
            TrialResult(
                outcome="error", error=sentence, error_kind=kind, execution=AgentResult(seconds=120.0)
            ),
            None,
        )
    passed = rng.random() < chance(chapter.skill, difficulty)
    failures = min(5, int(rng.expovariate(1.2 if passed else 0.5)))
    course = PASSED if passed else rng.choice((UNWRITTEN, WRONG, UNCHANGED))
    played = make_session(chapter.tool, place, failures, course, rng.randrange(VARIANTS))
    judging = _judging(passed, failures, played.facts, rng)
    scores = (*played.scores, *_gates(TOOLS[chapter.tool], place, course), *_judge(judging))
    verdict = decide_outcome(scores)
    tokens = 6_000 + 1_500 * played.interaction.total_commands + rng.randrange(2_000)
    result = TrialResult(
        outcome=verdict,
        evaluation=Evaluation(verdict, scores),
        interaction=played.interaction,
        execution=AgentResult(
            answer=played.answer,
            exit_code=0,
            seconds=round(8 + 4 * played.interaction.total_commands + rng.expovariate(0.2), 2),
            usage=Usage(input=tokens, output=tokens // 9),
            cost_usd=round(tokens * 4e-6, 5),
        ),
        artifacts=(played.kept,),
        detail={
            "interaction": played.interaction_json,
            "diagnosis": played.diagnosis,
            "attempts": played.attempts,
        },
    )
    return DemoTrial(result, played, judging)


def _gates(tool: DemoTool, place: int, course: str) -> tuple[Score, ...]:
    verb, _, noun = tool.key(place).partition("-")
    lost = LOST[course]
    return tuple(
        Score(
            "gates",
            name,
            float(name not in lost),
            name not in lost,
            message=REASONS[name].format(binary=tool.binary, verb=verb, noun=noun) if name in lost else "",
            detail=_detail(name, noun) if name.startswith("file") else {},
        )
        for name in GATES
    )


def _detail(gate: str, noun: str) -> dict[str, Json]:
    return {"path": "result.json", **({"expected": noun} if gate == "file_contains" else {})}


def _judging(passed: bool, failures: int, facts: frozenset[str], rng: Random) -> Judging:
    middle = (0.86 if passed else 0.52) - 0.03 * failures
    # The judge agrees with the gates.
    least, most = (THRESHOLD, 1.0) if passed else (0.0, THRESHOLD - 0.05)
    criteria = {name: round(min(most, max(least, rng.gauss(middle, 0.1))), 2) for name in _WEIGHTS}
    score = round(sum(_WEIGHTS[name] * value for name, value in criteria.items()), 3)
    # A lost gate is named first.
    issues = tuple(text for text, fact in ISSUES.items() if fact in facts)[-3:][::-1]
    possible = [text for text, fact in HIGHLIGHTS.items() if fact in facts]
    highlights = tuple(rng.sample(possible, min(len(possible), 2 if passed else rng.randint(0, 1))))
    return Judging(
        score=score,
        passed=score >= THRESHOLD,
        recomputed=score,
        criteria=criteria,
        positives=highlights,
        negatives=issues,
        reasoning=" ".join((*issues, *highlights)) or "The task was done without a detour.",
        confidence=0.8,
        model=JUDGE,
        cost_usd=0.002,
        seconds=2.0,
    )


def _judge(judging: Judging) -> tuple[Score, ...]:
    criteria = tuple(
        Score("judge", f"criterion.{name}", value, weight=_WEIGHTS[name])
        for name, value in judging.criteria.items()
    )
    return (Score("judge", "judge", judging.score, judging.passed, judging=judging), *criteria)
