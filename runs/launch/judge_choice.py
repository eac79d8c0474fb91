"""The judge of a request before it starts: the recommended one by name, and which trials would have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evalhub.lib.numbers import counted
from evalhub.teams.judge_models import RECOMMENDED, offered_judges
from evalhub.teams.models import Project
from evaluators.grading.criteria import Criteria
from evaluators.grading.scores import Evaluator
from runs.errors import RequestError
from runs.models import Target
from runs.models.run_options import RunOptions
from runs.sandbox.worker_settings import variables_of
from runs.targets.definitions import define
from runs.workers.worker_registry import WorkerJudge
from scenarios.formats.problems import ScenarioFileError

DEFAULT = "default"
"""The name that stands for the recommended judge."""
_MOST_NAMED = 5


def with_recommended_judge(project: Project, options: RunOptions) -> RunOptions:
    """Return the options with `default` replaced by the recommended model. Raises `RequestError` without a key."""
    if options.judge_model != DEFAULT:
        return options
    offered = offered_judges(variables_of(project))
    if not offered:
        raise RequestError(
            f"There is no recommended judge: none of {', '.join(RECOMMENDED)} is set, or this project may not use it. "
            "Set one and allow it in EVALHUB_ENV_ALLOW, or name a model."
        )
    return options.model_copy(update={"judge_model": offered[0]})


class Deciders(NamedTuple):
    """What decides the trials of a scenario."""

    asks_unnamed: bool = False
    """Whether it asks for a judge that it doesn't name."""
    others: bool = False
    """Whether anything else decides: gates, assertions, evaluators without a model, or a judge that it names."""


UNDECIDED = Deciders()


@dataclass(frozen=True)
class UnjudgedTrials:
    """The trials of a launch that ask for a judge which nothing names."""

    keys: tuple[str, ...]
    """Their scenarios."""
    trials: int
    of: int
    """All trials of the launch."""
    nothing_decides: bool
    """Whether no trial of the launch is decided without them: then none may start."""
    worker_unknown: bool
    """Whether no worker is registered that could have a judge of its own."""
    recommended: str
    """The recommended model; empty without its key."""

    @property
    def sentence(self) -> str:
        """How many trials can't be judged, how to name a judge, and how to go on without one."""
        named = ", ".join(self.keys[:_MOST_NAMED]) + (", …" if len(self.keys) > _MOST_NAMED else "")
        default = f", or `default` for {self.recommended}" if self.recommended else ""
        return (
            f"{self.trials} of {counted(self.of, 'trial')} can't be judged, because nothing names a judge ({named}): "
            f"name one with --judge-model (a model{default}), as the target's judge_target, in the project's settings "
            "or as LLM_TOOL_TEST_JUDGE of the worker, or go on without one with --no-judge, which leaves gates, "
            "layer 1, cost and time."
        )

    @property
    def refusal(self) -> str:
        """Why nothing of the launch starts; empty if something may."""
        return self.sentence if self.nothing_decides and not self.worker_unknown else ""

    @property
    def warning(self) -> str:
        """What a launch that may start loses; empty if it may not."""
        return "" if self.refusal else self.sentence


def find_unjudged(
    project: Project,
    planned: Sequence[tuple[Target, Mapping[str, Deciders], int]],
    options: RunOptions,
    workers: Callable[[], Sequence[WorkerJudge]],
) -> UnjudgedTrials | None:
    """Return the trials of a launch that ask for a judge which nothing names; None if there are none.

    `planned` has the trials of each scenario on a target, with what decides them by the scenario's key.
    `workers` returns those that may execute them: the judge of each counts. It is called only if it matters.
    """
    if not options.judge or options.judge_model or project.judge:
        return None
    if not any(deciders.asks_unnamed for _, scenarios, _ in planned for deciders in scenarios.values()):
        return None
    registered = workers()
    keys: dict[str, None] = {}
    trials, decided, unknown = 0, False, False
    for target, scenarios, number in planned:
        able = [each for each in registered if each.takes(target.labels)]
        is_named = any(each.has_judge for each in able) or bool(_judge_target(target))
        for key, deciders in scenarios.items():
            decided |= deciders.others or (deciders.asks_unnamed and is_named)
            if deciders.asks_unnamed and not is_named:
                unknown |= not able
                keys[key] = None
                trials += number
    if not trials:
        return None
    offered = offered_judges(variables_of(project))
    return UnjudgedTrials(
        tuple(keys),
        trials,
        sum(len(scenarios) * number for _, scenarios, number in planned),
        nothing_decides=not decided,
        worker_unknown=unknown,
        recommended=offered[0] if offered else "",
    )


def deciders_of(content: Mapping[str, Any]) -> Deciders:
    """Return what decides the trials of a scenario, from its version's content."""
    written = content.get("criteria") or {}
    if not (written.get("judge") or written.get("evaluators")):
        # Most scenarios, which needn't be validated for each plan.
        return Deciders(others=bool(written.get("gates") or set(written.get("expect") or ()) - {"stubs"}))
    criteria = Criteria.model_validate(written)
    asks_unnamed = _asks_unnamed(criteria)
    return Deciders(
        asks_unnamed, _decides_without_judge(criteria) or (criteria.asks_model and not asks_unnamed)
    )


def _judge_target(target: Target) -> str:
    try:
        return define(target.definition, file=target.name).judge_target
    except ScenarioFileError:
        # The run says so itself when it is prepared.
        return ""


def _asks_unnamed(criteria: Criteria) -> bool:
    judge = criteria.judge
    judge_asks = judge is not None and judge.enabled and not judge.model
    return judge_asks or any(map(_evaluator_asks_unnamed, criteria.evaluators))


def _evaluator_asks_unnamed(evaluator: Evaluator) -> bool:
    members: tuple[Evaluator, ...] = getattr(evaluator, "evaluators", ())
    if members:
        return any(map(_evaluator_asks_unnamed, members))
    return evaluator.asks_model and not getattr(evaluator, "model", "")


def _decides_without_judge(criteria: Criteria) -> bool:
    """Return whether something beside a model decides a trial."""
    asserted = criteria.expect is not None and criteria.expect.asserted
    return bool(criteria.gates or asserted) or any(not each.asks_model for each in criteria.evaluators)
