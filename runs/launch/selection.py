"""Select the scenarios and targets of a request, and find what would judge its trials before it starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from django.db.models import QuerySet

from evalhub.lib.numbers import format_count
from evalhub.teams.judge_models import RECOMMENDED, judge_problem, offered_judges
from evalhub.teams.models import Project
from evaluators.grading.evaluate import Criteria
from evaluators.grading.scores import Evaluator
from evaluators.statistics.looks import first_size
from runs.errors import NothingToRun, RequestError, UnknownTarget
from runs.models import Target
from runs.models.run_options import RunOptions, Selection
from runs.sandbox.worker_settings import variables_of
from runs.targets.definitions import define
from runs.targets.providers.registry import JUDGES, OPTIONS
from runs.workers.worker_registry import WorkerJudge
from scenarios.adopted_guidance import last_guidance
from scenarios.formats.parsed import ScenarioFileError
from scenarios.models import Guidance, Suite, SuiteEntry, SuiteVersion

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
            f"{self.trials} of {format_count(self.of, 'trial')} can't be judged, because nothing names a judge ({named}): "
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


@dataclass(frozen=True)
class ChosenScenario:
    """The fields of a scenario version that planning uses."""

    version_id: int
    scenario_id: int
    key: str
    tags: tuple[str, ...]
    tier: int
    target: str
    """The name of its own target; empty for none."""
    matrix: tuple[tuple[str, str, tuple[str, ...]], ...] | None
    """Targets with another name of each, and the models to run on it; None if not set."""
    turns_at: str = ""
    """Where its `run.max_turns` is, as file:line; empty without one. Conversations with stubs limit their own turns."""
    deciders: Deciders = UNDECIDED


def scenarios_of(version: SuiteVersion) -> tuple[ChosenScenario, ...]:
    """Return all scenarios of a suite version, in order. One query."""
    return tuple(_scenario(*row) for row in _entries(version.pk))


def _entries(version: int) -> QuerySet[SuiteEntry, Any]:
    entries = SuiteEntry.objects.filter(suite_version=version).order_by("position")
    columns = ("scenario_version_id", "scenario_version__scenario_id", "scenario_version__content")
    return entries.values_list(*columns)


def select_scenarios(
    scenarios: Sequence[ChosenScenario], selection: Selection, suite: str
) -> tuple[ChosenScenario, ...]:
    """Return the selected scenarios of a suite. Raises `NothingToRun` if there are none."""
    unknown = set(selection.only) - {scenario.key for scenario in scenarios}
    if unknown:
        keys = ", ".join(sorted(scenario.key for scenario in scenarios))
        raise NothingToRun(f"{suite} has no scenario '{min(unknown)}'. It has: {keys}.")
    chosen = tuple(
        scenario
        for scenario in scenarios
        if selection.takes(key=scenario.key, tags=scenario.tags, tier=scenario.tier)
    )
    if not chosen:
        raise NothingToRun(f"No scenario of {suite} matches the selected tags, tier and keys.")
    number, of = selection.shard
    # Every n-th, so that shards are about as long as each other where neighbours are alike.
    part = chosen[number - 1 :: of]
    if not part:
        raise NothingToRun(
            f"Shard {number}/{of} of {suite} is empty: {format_count(len(chosen), 'scenario')} can be split into "
            f"{len(chosen)} shards at most."
        )
    return part


def _scenario(version_id: int, scenario_id: int, content: dict[str, Any]) -> ChosenScenario:
    matrix = content.get("matrix")
    return ChosenScenario(
        version_id,
        scenario_id,
        content["key"],
        tuple(content.get("tags", ())),
        content.get("tier", 0),
        content.get("target", ""),
        None
        if matrix is None
        else tuple((row["target"], row.get("id", ""), tuple(row.get("models", ()))) for row in matrix),
        _turns_at(content),
        deciders_of(content),
    )


def _turns_at(content: Mapping[str, Any]) -> str:
    conversation = content.get("stubs") is not None or content.get("criteria", {}).get("expect") is not None
    limited = (content.get("limits") or {}).get("max_turns") and not conversation
    return f"{content.get('file') or content['key']}:{content.get('line', 1)}" if limited else ""


class ProjectReader:
    """Reads targets, scenarios and guidance of a project once; a page can pass what it has read."""

    def __init__(
        self,
        project: Project,
        *,
        targets: Sequence[Target] | None = None,
        guidance: Mapping[int, Guidance | None] | None = None,
    ) -> None:
        """Accept already read values: all accepted targets, and default guidance by suite."""
        self._project = project
        self._accepted = targets
        self._targets = {target.name: target for target in targets or ()}
        self._guidance = dict(guidance or {})
        self._scenarios: dict[int, tuple[ChosenScenario, ...]] = {}

    def scenarios(self, version: SuiteVersion) -> tuple[ChosenScenario, ...]:
        """Return all scenarios of a suite version."""
        if version.pk not in self._scenarios:
            self._scenarios[version.pk] = scenarios_of(version)
        return self._scenarios[version.pk]

    def guidance(self, suite: Suite) -> Guidance | None:
        """Return the default guidance of a run of the suite."""
        if suite.pk not in self._guidance:
            self._guidance[suite.pk] = last_guidance(suite)
        return self._guidance[suite.pk]

    def arms(
        self, scenario: ChosenScenario, targets: Sequence[str], models: Sequence[str]
    ) -> list[tuple[Target, str]]:
        """Return target and model of each run of a scenario; options override its matrix."""
        if targets or scenario.matrix is None:
            names = targets or [scenario.target]
            return [(self._find_target(name), model) for name in names for model in models or ("",)]
        return [
            (self._find_target(name, other), model)
            for name, other, own_models in scenario.matrix
            for model in (models or own_models or ("",))
        ]

    def profile(self, version: SuiteVersion, name: str) -> tuple[list[str], list[str]]:
        """Return targets and models of a profile in the suite's settings file. Raises `RequestError`.

        A tool that lists models must list those of the profile (llm-tool-test evaluation, config file).
        """
        profiles, tools = (version.config.get(key) or {} for key in ("profiles", "tools"))
        if name not in profiles:
            known = ", ".join(sorted(profiles)) or "none"
            raise RequestError(
                f"{version.suite.name} has no profile '{name}' in its settings. It has: {known}."
            )
        profile = profiles[name]
        models = profile.get("models") or []
        for tool in profile.get("tools") or []:
            supported = (tools.get(tool) or {}).get("models") or models
            if missing := [model for model in models if model not in supported]:
                raise RequestError(
                    f"The tool '{tool}' of the profile '{name}' does not support the model '{missing[0]}'. "
                    f"It has: {', '.join(supported)}."
                )
        return [self._target_of_tool(tool, tools) for tool in profile.get("tools") or []], list(models)

    def _target_of_tool(self, tool: str, tools: Mapping[str, Any]) -> str:
        """Return the name of a tool's target: the tool's key, else the name that its section gives."""
        named = (tools.get(tool) or {}).get("name") or tool
        existing = set(
            Target.objects.filter(project=self._project, name__in=(tool, named)).values_list(
                "name", flat=True
            )
        )
        return named if named in existing and tool not in existing else tool

    def _find_target(self, name: str, other: str = "") -> Target:
        if other and name not in self._targets:
            try:
                return self._find_target(name)
            except UnknownTarget:
                if Target.objects.filter(project=self._project, name=other).exists():
                    return self._find_target(other)
                raise
        if name not in self._targets:
            self._targets[name] = find_target(self._project, name) if name else self._only()
        return self._targets[name]

    def _only(self) -> Target:
        accepted = self._accepted
        if accepted is None:
            accepted = list(Target.objects.filter(project=self._project, accepted=True))
        return only_of(sorted(accepted, key=lambda target: target.name))


def find_target(project: Project, name: str) -> Target:
    """Return the project's accepted target. Raises `UnknownTarget`, which lists the targets."""
    target = Target.objects.filter(project=project, name=name).first()
    if target is not None and target.accepted:
        return target
    if target is not None:
        raise UnknownTarget(_refusal(target))
    names = sorted(Target.objects.filter(project=project, accepted=True).values_list("name", flat=True))
    if not names:
        raise UnknownTarget(
            f"There is no target called '{name}', and the project has none. Give a targets file."
        )
    close = get_close_matches(name, names, n=1)
    hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(names)}."
    raise UnknownTarget(f"There is no target called '{name}'. {hint}")


def check_judge(project: Project, options: RunOptions) -> None:
    """Raise `UnknownTarget` if the request's judge is neither a usable target nor a model. At most two queries.

    A name with a slash is a model.
    """
    if not (options.judge and options.judge_model) or "/" in options.judge_model:
        return
    judge = Target.objects.filter(project=project, name=options.judge_model).first()
    if judge is None and options.judge_model != DEFAULT:
        names = Target.objects.filter(project=project, accepted=True, provider__in=JUDGES)
        if problem := judge_problem(options.judge_model, list(names.values_list("name", flat=True))):
            raise UnknownTarget(problem)
    if judge is not None and not judge.accepted:
        raise UnknownTarget(_refusal(judge))
    if judge is not None and judge.provider not in JUDGES:
        raise UnknownTarget(
            f"The target '{judge.name}' can't judge: {judge.provider} only does tasks. Choose a model, or a cli, mock or "
            "replay target."
        )


STRICT = frozenset(("format/vacuous", "format/unknown-key"))
"""Lints of eval files that are errors in strict mode."""


def check_strict(version: SuiteVersion) -> None:
    """Raise `RequestError` if a stored eval file of tool-forge has lints that strict mode refuses."""
    refused = (
        [lint for lint in version.lints if lint["id"] in STRICT]
        if version.suite.format == "tool_forge"
        else []
    )
    if refused:
        first = refused[0]
        raise RequestError(
            f"{first['file']}:{first['line']}: {first['where']}: {first['what']} Strict mode refuses it. {first['fix']}"
        )


def check_turns(scenario: ChosenScenario, target: Target) -> None:
    """Raise `RequestError` if a scenario limits the turns of an agent that has no such option."""
    options = OPTIONS.get(target.provider)
    if scenario.turns_at and options and not options.limits_turns:
        able = ", ".join(kind for kind, each in OPTIONS.items() if each.limits_turns)
        raise RequestError(
            f"{scenario.turns_at}: run.max_turns: the target '{target.name}' ({target.provider}) can't limit its turns."
            f" Remove the key, or run {scenario.key} on a target of {able}."
        )


def _refusal(target: Target) -> str:
    if target.provider == "imported":
        return f"The target '{target.name}' exists only in imported results. Name one that can run."
    return f"The target '{target.name}' is a proposal. Ask an admin to accept it on the targets page."


def only_of(targets: Sequence[Target]) -> Target:
    """Return a project's only target, for requests that name none. Raises `UnknownTarget`."""
    if len(targets) == 1:
        return targets[0]
    if not targets:
        raise UnknownTarget(
            "The project has no targets yet. Give a targets file, or add one on the targets page."
        )
    names = ", ".join(target.name for target in targets)
    raise UnknownTarget(f"Several targets could run this: {names}. Choose one.")


USUAL_MOST = 12
"""The most trials of each scenario where nothing else is asked for, at least four times those of the first look."""


def with_looks(options: RunOptions) -> RunOptions:
    """Return the options with the first look's and the most trials of a run until a verdict. Raises `RequestError`.

    A single trial, which is every request's default, means a quarter of the most.
    """
    if not options.until_decided:
        if options.max_trials is not None:
            raise RequestError(
                "--max-trials (max_trials) limits a run until a verdict. Add --until-decided (until_decided)."
            )
        return options
    if options.shard:
        raise RequestError(
            "A shard has no verdict before all parts are merged. Run the shards without --until-decided."
        )
    most = options.max_trials or max(USUAL_MOST, 4 * options.trials)
    first = options.trials if options.trials > 1 else first_size(most)
    if first > most:
        raise RequestError(
            f"The first look takes {format_count(first, 'trial')} of each scenario, and the most are {most}. Ask for fewer"
            " trials, or raise the most."
        )
    return options.model_copy(update={"trials": first, "max_trials": min(most, 1000)})


def check_sides(options: RunOptions, guidance: Sequence[Guidance]) -> None:
    """Raise `RequestError` if a request compares versions of a suite's guidance with something else, or too many.

    Until a verdict it compares two; a lift has its third arm beside them.
    """
    arms = max(Counter(each.suite_id for each in guidance).values(), default=0)
    if options.baseline and arms > 1:
        raise RequestError(
            "Several versions of guidance are compared with the first of them. Leave out the baseline, or choose one version."
        )
    if options.until_decided and arms > (3 if options.lift else 2):
        raise RequestError("A run until a verdict compares two versions of guidance. Choose two.")
