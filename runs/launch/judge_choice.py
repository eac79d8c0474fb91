"""The judge of a request before it starts: the recommended one by name, and which trials would have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
from scenarios.models import ScenarioVersion

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


class JudgedTrials(NamedTuple):
    """The trials of a launch on one target: how many of each scenario version."""

    target: Target
    scenario_versions: Sequence[int]
    trials: int


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
    project: Project, planned: Iterable[JudgedTrials], options: RunOptions, workers: Sequence[WorkerJudge]
) -> UnjudgedTrials | None:
    """Return the trials of a launch that ask for a judge which nothing names; None if there are none.

    `workers` are those that may execute them: the judge of each counts. One query at most, none where the request or the
    project names a judge.
    """
    if not options.judge or options.judge_model or project.judge:
        return None
    launch = list(planned)
    criteria = _criteria({key for each in launch for key in each.scenario_versions})
    keys: dict[str, None] = {}
    trials, decided, unknown = 0, False, False
    for target, versions, number in launch:
        able = [each for each in workers if each.takes(target.labels)]
        is_named = any(each.has_judge for each in able) or bool(_judge_target(target))
        for version in versions:
            key, asked = criteria[version]
            lacks = not is_named and _asks_unnamed(asked)
            decided |= _decides_without_judge(asked) or (asked.asks_model and not lacks)
            if lacks:
                unknown |= not able
                keys[key] = None
                trials += number
    if not trials:
        return None
    offered = offered_judges(variables_of(project))
    return UnjudgedTrials(
        tuple(keys),
        trials,
        sum(len(each.scenario_versions) * each.trials for each in launch),
        nothing_decides=not decided,
        worker_unknown=unknown,
        recommended=offered[0] if offered else "",
    )


def _criteria(versions: Iterable[int]) -> dict[int, tuple[str, Criteria]]:
    """Return key and criteria of scenario versions. One query."""
    rows = ScenarioVersion.objects.filter(pk__in=list(versions)).order_by("pk")
    return {
        pk: (key, Criteria.model_validate(content or {}))
        for pk, key, content in rows.values_list("pk", "content__key", "content__criteria")
    }


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
