"""The project's rule that an uncalibrated judge informs and does not decide."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from evalhub.teams.models import Project
from evaluators.grading.criteria import Criteria
from evaluators.grading.evaluate import LAYERS, Layer, judge_layer
from evaluators.grading.evidence import Evidence
from evaluators.model import Score
from runs.review.calibrations import JudgeVersion, calibrated_versions

INFORMS = "The judge is not calibrated, so its score informs and does not decide."


def layers_for(project: Project) -> Sequence[Layer]:
    """Return the layers of a project's trials; its rubric judge decides unless the rule says otherwise."""
    if not project.only_calibrated_judges:
        return LAYERS
    known = calibrated_versions(project)

    def informing(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
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
