"""The judge of a request before it starts: the recommended one by name, and which trials would have none."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings

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
from scenarios.formats.problems import ScenarioFileError
from scenarios.models import ScenarioVersion
from scenarios.spec import ScenarioSpec

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


def unjudged_warning(
    target: Target, options: RunOptions, scenario_versions: Iterable[int], trials: int
) -> str:
    """Say which scenarios ask for a judge that nothing names; empty if there are none. At most one query."""
    if not options.judge or options.judge_model or settings.DEFAULT_JUDGE or target.project.judge:
        return ""
    if _judge_target(target):
        return ""
    rows = ScenarioVersion.objects.filter(pk__in=list(scenario_versions)).order_by("pk")
    specs = map(ScenarioSpec.model_validate, rows.values_list("content", flat=True))
    keys = [spec.key for spec in specs if _asks_unnamed(spec.criteria)]
    if not keys:
        return ""
    named = ", ".join(keys[:_MOST_NAMED]) + (", …" if len(keys) > _MOST_NAMED else "")
    offered = offered_judges(variables_of(target.project))
    hint = f"--judge-model default uses {offered[0]}" if offered else "--judge-model MODEL names one"
    return (
        f"{counted(len(keys) * trials, 'trial')} will have no judge and end as errors: {named}. "
        f"Set a default judge in the project's settings; {hint}; --no-judge runs without."
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
