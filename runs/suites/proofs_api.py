"""Proofs of suites: request one, and read the newest."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Body, Path, Router, Schema, Status
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.lib.timestamps import moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.request_body import RequestBody
from runs.models import SuiteProof
from runs.results.validations import validations_of_proof
from runs.suites.proof_requests import request_proof
from runs.suites.prove import validations_json
from scenarios.models import SuiteVersion

router = Router(tags=["proofs"])


class SealOut(Schema):
    scenario: str
    seal: str
    """`proved`, `unproved`, `passes_without_agent` or `solution_fails`."""
    reason: str
    is_failure: bool
    """Whether something is wrong, not only missing."""
    held: list[str]
    """Gates that hold before an agent starts."""


class ProofIn(RequestBody):
    """How to prove."""

    max_usd: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """What judges may cost, in US dollars. Without it, no judge is asked."""


class ProofOut(Schema):
    id: int
    suite: str
    version: int
    created: str
    finished: str | None
    """Null until a worker has proved every scenario."""
    error: str
    max_usd: float | None
    """What judges may cost; null asks none."""
    cost_usd: float
    """What judges cost."""
    scenarios: list[SealOut]


def _version(request: ApiRequest, slug: str) -> SuiteVersion:
    """Return the newest version of the project's suite. Raises `ApiError` 404."""
    rows = SuiteVersion.objects.filter(suite__project=request.access.project, suite__slug=slug)
    version = rows.select_related("suite__project").first()
    if version is None:
        raise not_found("suite", slug)
    return version


def _proof_json(proof: SuiteProof, version: SuiteVersion) -> dict[str, Any]:
    return {
        "id": proof.pk,
        "suite": version.suite.slug,
        "version": version.number,
        "created": moment(proof.created),
        "finished": moment(proof.finished) if proof.finished else None,
        "error": proof.error,
        "max_usd": proof.max_usd,
        "cost_usd": proof.cost_usd,
        "scenarios": validations_json(validations_of_proof(proof)),
    }


@router.post("/suites/{slug}/proofs", auth=Bearer("run"), response=declare_answers(ProofOut, status=202))
def create_proof(
    request: ApiRequest, slug: Path[Text], body: Body[ProofIn | None] = None
) -> Status[dict[str, Any]]:
    """Request a proof of a suite's newest version; a worker makes it. Returns the pending one if there is one."""
    version = _version(request, slug)
    proof = request_proof(version, by=request.access.user, max_usd=body.max_usd if body else None)
    return Status(202, _proof_json(proof, version))


@router.get("/suites/{slug}/proofs", auth=Bearer(), response=declare_answers(ProofOut))
def get_proof(request: ApiRequest, slug: Path[Text]) -> dict[str, Any]:
    """Get the newest proof of a suite's newest version."""
    version = _version(request, slug)
    proof = version.proofs.first()
    if proof is None:
        raise not_found("proof of", slug)
    return _proof_json(proof, version)
