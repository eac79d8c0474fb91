"""A suite's proof on its page: its seals, A/A pairs, and the buttons for both."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from evalhub.teams.pages import ProjectRequest
from evalhub.web.fragments import STOP_POLLING
from runs.compare.aa_pairs import AaRates, aa_rates
from runs.errors import RequestError
from runs.models import Run, SuiteProof, Target
from runs.models.run import OPEN, Trigger
from runs.results.outcome_history import runs_of_suite_state
from runs.results.seals import count_seals, seals_of
from runs.suites.proof_requests import request_aa_pair, request_proof
from runs.suites.suite_page.forms import AaForm, ProofForm
from scenarios.models import Suite, SuiteVersion

NO_PAIRS = AaRates()


@dataclass(frozen=True)
class ShownProof:
    """What is known of a suite beside its runs."""

    seals: str
    """The sum of the scenarios' seals."""
    scenarios: int
    is_proving: bool
    """Whether a proof waits for a worker or runs."""
    error: str = ""
    """Why the last proof ended early."""
    max_usd: float | None = None
    cost_usd: float = 0.0
    target: Target | None = None
    aa: AaRates = NO_PAIRS


def shown_proof(
    suite: Suite, seals: str, scenarios: int, proof: SuiteProof | None, target: Target | None
) -> ShownProof:
    """Return a proof as its panel shows it, with the A/A pairs on the target. One query."""
    aa = aa_rates(suite.pk, target.pk) if target else NO_PAIRS
    if proof is None:
        return ShownProof(seals, scenarios, is_proving=False, target=target, aa=aa)
    return ShownProof(
        seals,
        scenarios,
        proof.is_waiting(now=timezone.now()),
        proof.error if proof.finished else "",
        proof.max_usd,
        proof.cost_usd,
        target,
        aa,
    )


def targets_of(suite: Suite) -> QuerySet[Target]:
    """Return the targets that ran a suite, each with the newest run of the suite's state. One query.

    `closed` is the newest closed run on it, `not_started` what that says of a tool that never started.
    """
    newest = runs_of_suite_state(suite.pk).filter(target=OuterRef("pk")).values("pk")[:1]
    ran = Run.objects.filter(suite=suite).order_by().values("target")
    closed = Run.objects.filter(suite=suite, target=OuterRef("pk")).exclude(state__in=OPEN).order_by("-pk")
    return Target.objects.filter(pk__in=ran).annotate(
        newest=Subquery(newest),
        closed=Subquery(closed.values("pk")[:1]),
        not_started=Subquery(closed.values("not_started")[:1]),
    )


def newest_target(targets: list[Target]) -> Target | None:
    """Return the target of the newest run of the suite's state among those of `targets_of`."""
    return max(targets, key=lambda target: vars(target)["newest"] or 0, default=None)


def proof_part(request: ProjectRequest, suite: Suite) -> HttpResponse:
    """Return the panel for htmx; once the proof has ended, stop its polling and reload the page."""
    version = suite.versions.first()
    keys = dict(version.scenario_versions.values_list("pk", "scenario__key")) if version else {}
    seals, proof = seals_of(version, keys) if version else ({}, None)
    shown = shown_proof(
        suite, count_seals(seals.values()), len(keys), proof, newest_target(list(targets_of(suite)))
    )
    context = {"suite": suite, "proof": shown, "may_run": request.access.may("run")}
    if shown.is_proving:
        return render(request, "suites/suites/_proof.html", context)
    response = render(request, "suites/suites/_proof.html", context, status=STOP_POLLING)
    response["HX-Refresh"] = "true"
    return response


def prove(request: ProjectRequest, suite: Suite, version: SuiteVersion) -> HttpResponse:
    """Request a proof of a suite's newest version."""
    form = ProofForm(request.POST)
    if form.is_valid():
        request_proof(version, by=request.user, max_usd=form.cleaned_data["max_usd"])
        messages.success(request, "A worker proves the suite. The seals appear here.")
    else:
        messages.error(request, str(form.errors["max_usd"][0]))
    return redirect(f"{suite.get_absolute_url()}#proof")


def run_aa_pair(request: ProjectRequest, suite: Suite, version: SuiteVersion) -> HttpResponse:
    """Queue an A/A pair and show its second run, which has the verdict."""
    form = AaForm(request.POST)
    try:
        if not form.is_valid():
            raise RequestError(" ".join(str(each[0]) for each in form.errors.values()))
        values = form.cleaned_data
        _, second = request_aa_pair(
            version, values["target"], trials=values["trials"], by=request.user, trigger=Trigger.WEB
        )
    except RequestError as error:
        messages.error(request, str(error))
        return redirect(f"{suite.get_absolute_url()}#proof")
    messages.success(request, "Queued an A/A pair. This run is compared with the one before it.")
    return redirect("run-detail", request.access.project.slug, second.pk)
