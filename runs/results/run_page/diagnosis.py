"""Show a run's diagnosed patterns with the calls that show them, and store what people say of them."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evalhub.teams.pages import ProjectRequest, project_page
from evaluators.statistics.run_diagnosis import DiagnosisThresholds, Finding
from evaluators.tool_use.diagnosis import ERRING, RETRIES, threshold_sentence
from runs.errors import RequestError
from runs.models import Run
from runs.results.digests import Digest
from runs.results.find_run import find_shown_run
from runs.review.diagnosis_reviews import NO_REVIEW, Precision, precisions, review_finding

_WORDS = {"right": True, "wrong": False, "": None}


@dataclass(frozen=True)
class ShownFinding:
    """A finding on its run's page."""

    finding: Finding
    thresholds: str
    """The pattern's thresholds in a sentence; empty for an unknown pattern."""
    precision: Precision

    @property
    def links_to_failing(self) -> bool:
        """Return whether its commands' failing calls show it."""
        return self.finding.pattern in (*ERRING, RETRIES)


def shown_findings(run: Run, digest: Digest) -> list[ShownFinding]:
    """Return the findings of a run as `find_run` returns it. One query if there are any and some were reviewed."""
    findings = digest.diagnosis
    reviewed = precisions(run) if findings and vars(run)["has_reviews"] else {}
    thresholds = digest.thresholds or DiagnosisThresholds()
    return [
        ShownFinding(
            finding,
            threshold_sentence(finding.pattern, thresholds.limits),
            reviewed.get(finding.pattern, NO_REVIEW),
        )
        for finding in findings
    ]


@require_POST
@project_page("review")
def diagnosis_review(request: ProjectRequest, pk: int, pattern: str) -> HttpResponse:
    """Store whether a finding is right."""
    run, word = find_shown_run(request, pk), request.POST.get("word", "")
    if word not in _WORDS:
        messages.error(request, "Choose right or wrong.")
    else:
        try:
            review_finding(run, pattern, is_right=_WORDS[word], by=request.user)
        except RequestError as error:
            messages.error(request, str(error))
    return redirect(f"{run.get_absolute_url()}#diagnosis")
