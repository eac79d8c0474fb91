"""A suite's proof on its page: its seals, the button to request one, and the forms of proofs and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from evalhub.teams.access import ProjectRequest
from evalhub.web.middleware import STOP_POLLING
from runs.models import Run, SuiteProof, Target
from runs.models.run import OPEN
from runs.results.outcome_history import runs_of_suite_state
from runs.results.validations import count_validations, validations_of
from runs.suites.proofs_api import request_proof
from scenarios.models import Suite, SuiteVersion

MOST_TRIALS = 1000


class SuiteForm(forms.Form):
    """A suite's release rule, which is k and the least mean pass^k in percent or neither, and whether it retests."""

    k = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_TRIALS,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            f"Trials in a row: enter a number from 1 to {MOST_TRIALS:,}.",
        ),
    )
    percent = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=100,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            "Chance: enter a percentage from 0.1 to 100.",
        ),
    )
    retests = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        """Return the settings. Refuses half a rule."""
        given = self.cleaned_data
        if not self.errors and (given["k"] is None) != (given["percent"] is None):
            raise forms.ValidationError("A release rule has both numbers: trials in a row, and a chance.")
        return given


class ProofForm(forms.Form):
    """What judges may cost in a proof; empty asks none."""

    max_usd = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=10_000,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            "Judges' budget: enter dollars from 0.01 to 10,000, or nothing.",
        ),
    )


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


def shown_proof(seals: str, scenarios: int, proof: SuiteProof | None) -> ShownProof:
    """Return a proof as its panel shows it."""
    if proof is None:
        return ShownProof(seals, scenarios, is_proving=False)
    return ShownProof(
        seals,
        scenarios,
        proof.is_waiting(now=timezone.now()),
        proof.error if proof.finished else "",
        proof.max_usd,
        proof.cost_usd,
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
    validations, proof = validations_of(version, keys) if version else ({}, None)
    shown = shown_proof(count_validations(validations.values()), len(keys), proof)
    context = {"suite": suite, "proof": shown, "may_run": request.access.may("run")}
    if shown.is_proving:
        return render(request, "suites/suites/_proof.html", context)
    response = render(request, "suites/suites/_proof.html", context, status=STOP_POLLING)
    response["HX-Refresh"] = "true"
    return response


def start_proof(request: ProjectRequest, suite: Suite, version: SuiteVersion) -> HttpResponse:
    """Request a proof of a suite's newest version."""
    form = ProofForm(request.POST)
    if form.is_valid():
        request_proof(version, by=request.user, max_usd=form.cleaned_data["max_usd"])
        messages.success(request, "A worker proves the suite. The seals appear here.")
    else:
        messages.error(request, str(form.errors["max_usd"][0]))
    return redirect(f"{suite.get_absolute_url()}#proof")
