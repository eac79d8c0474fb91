"""Select the judge, a target of the project or a model, and say whether it may decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings
from msgspec.structs import replace

from evalhub.teams.judge_models import judge_problem, model_id
from evalhub.teams.models import Project
from evaluators.grading.evaluate import LAYERS, Criteria, Layer, judge_layer
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import Complete, Completion, CompletionError, CompletionRequest, Score
from evaluators.redaction import mask_values
from runs.db.retry import outage, retry_when_lost
from runs.errors import ProviderError
from runs.models import Run, Target, TargetVersion
from runs.models.price import prices_of
from runs.models.run_options import RunOptions
from runs.review.calibrations import JudgeVersion, calibrated_versions
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import resolve_target, version_of
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.registry import MODELS

INFORMS = "The judge is not calibrated, so its score informs and does not decide."


def layers_for(project: Project) -> Sequence[Layer]:
    """Return the layers of a project's trials; its rubric judge decides unless the rule says otherwise."""
    if not project.only_calibrated_judges:
        return LAYERS
    known = calibrated_versions(project)

    def informing(
        criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]
    ) -> tuple[Score, ...]:
        return inform(judge_layer(criteria, evidence, so_far), known)

    return tuple(informing if layer is judge_layer else layer for layer in LAYERS)


def inform(scores: tuple[Score, ...], known: frozenset[JudgeVersion]) -> tuple[Score, ...]:
    """Return a judge's scores without a verdict unless each of its judgings is by a calibrated version."""
    judgings = [score.judging for score in scores if score.judging]
    if all(JudgeVersion(judging.model, judging.rubric) in known for judging in judgings):
        return scores
    return tuple(
        replace(score, passed=None, message=f"{score.message} {INFORMS}")
        if score.passed is not None
        else score
        for score in scores
    )


def make_judge(
    run: Run, target: ResolvedTarget, options: RunOptions, variables: Mapping[str, str]
) -> Complete:
    """Return the run's judge.

    The explicit choice comes first, then `LLM_TOOL_TEST_JUDGE`, then the scenario's own (named in the request),
    then the target's `judge_target`, then the project's default.
    """
    first, last = judge_names(run, target, options)
    judges: dict[str, Complete] = {}

    def ask(request: CompletionRequest) -> Completion:
        name = first or request.model or last
        if not name:
            raise CompletionError(
                "No judge is configured. Set one with --judge-model, in evaluation.judge.model, as the target's "
                "judge_target, or in the project's settings."
            )
        if name not in judges:
            # The agent's work is done and not recorded yet.
            judges[name] = retry_when_lost(lambda: _make(run, name, variables), may_wait=outage.may_wait)
        return judges[name](request)

    return ask


def judge_names(run: Run, target: ResolvedTarget, options: RunOptions) -> tuple[str, str]:
    """Return the judge that overrides scenarios, and the default one; empty for none."""
    first = options.judge_model or settings.DEFAULT_JUDGE
    return first, target.options.judge_target or run.project.judge


def judge_targets(
    run: Run, target: ResolvedTarget, options: RunOptions, of_scenarios: Iterable[str]
) -> list[Target]:
    """Return the project's targets that may judge trials of a run."""
    if not options.judge:
        return []
    first, last = judge_names(run, target, options)
    names = {first} if first else {last, *of_scenarios}
    return list(Target.objects.filter(project=run.project_id, name__in=names, accepted=True))


def judge_target(run: Run, name: str) -> Target | None:
    """Return the judge with this name among the project's targets; None for a model."""
    return Target.objects.filter(project=run.project_id, name=name, accepted=True).first()


def _make(run: Run, name: str, variables: Mapping[str, str]) -> Complete:
    project_target = judge_target(run, name)
    try:
        model = model_id(name)
        if project_target is not None or model:
            target = (
                resolve_target(project_target, variables, _version(run, project_target))
                if project_target
                else _model(run, model, variables)
            )
            return mask_judge(make_complete(target), target.secrets)
    except ProviderError as error:
        raise CompletionError(str(error)) from error
    raise CompletionError(judge_problem(name, ()))


def _version(run: Run, judge: Target) -> TargetVersion | None:
    """Return the version of a judge for all trials of a run: that of the run's preparation.

    A judge that only an evaluator names is versioned when the first trial uses it. None for a proof, which stores no run.
    """
    if run.pk is None:
        return None
    pinned = run.judge_versions.filter(target=judge).order_by("pk")
    if not pinned:
        run.judge_versions.add(version_of(judge))
    # Another worker may have stored it first.
    return pinned.all()[0]


def _model(run: Run, name: str, variables: Mapping[str, str]) -> ResolvedTarget:
    """Return a model by its litellm id. Raises `ProviderError` if its key is missing."""
    # Here and below: imported on first use because most runs have no judge.
    from runs.targets.language_models.litellm import LitellmOptions
    from runs.targets.providers.access import with_key

    options = LitellmOptions(model=name)
    return with_key(
        ResolvedTarget(
            name,
            "litellm",
            options,
            prices=prices_of(run.project_id, run.suite_version.config if run.suite_version_id else {}),
        ),
        variables,
    )


def mask_judge(complete: Complete, secrets: tuple[str, ...]) -> Complete:
    """Return a judge with these secret values masked in its answers and errors."""
    if not secrets:
        return complete

    def ask(request: CompletionRequest) -> Completion:
        try:
            answer = complete(request)
        except CompletionError as error:
            raise CompletionError(mask_values(str(error), secrets)) from error
        return replace(answer, text=mask_values(answer.text, secrets))

    return ask


def make_complete(target: ResolvedTarget) -> Complete:
    """Return a target as a judge. Raises `ProviderError` if its kind cannot judge."""
    if target.kind == "cli":
        from runs.targets.agents.cli_judge import complete_through_command

        return complete_through_command(target, containment().for_target(target.options))
    if target.kind == "mock":
        from runs.targets.providers.mock import complete_with_mock

        return complete_with_mock(target)
    if target.kind == "replay":
        from runs.targets.providers.replay import complete_with_replay

        return complete_with_replay(target, containment().for_target(target.options))
    if target.kind in MODELS:
        from runs.targets.language_models.language_model import complete_through_model

        return complete_through_model(target, containment().outbound)
    raise ProviderError(
        f"The target '{target.name}' cannot judge: '{target.kind}' does tasks only. Name a model, or a cli, mock or replay target.",
        kind="configuration",
    )
