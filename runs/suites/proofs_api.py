"""Proofs of stored suites: requested on a page or by REST, made by a worker or by a command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from django.contrib.auth.models import User
from django.utils import timezone
from ninja import Body, Path, Router, Schema, Status
from pydantic import Field

from evalhub.lib.storable_text import Text, make_storable
from evalhub.lib.timestamps import format_timestamp
from evalhub.teams import audit
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.request_body import RequestBody
from runs.db.disk import CannotStore
from runs.db.retry import retry_when_lost
from runs.db.transactions import request_job, write_transaction
from runs.engine.context import load_fixture
from runs.engine.judges import make_judge
from runs.engine.proof_agents import JudgeBudget, ProofSetting
from runs.errors import ProviderError, RequestError
from runs.models import Job, ScenarioProof, SuiteProof
from runs.results.validations import ScenarioValidation, validations_of_proof
from runs.sandbox.worker_settings import containment, variables_of
from runs.suites.prove import ProvedScenario, prove, validations_json
from runs.workers import jobs, wakeups
from runs.workers.job_runner import run_job
from scenarios.models import ScenarioVersion, SuiteVersion
from scenarios.storing import guidance_files, solution_hash


@dataclass(frozen=True)
class StoredScenario:
    """A scenario of a suite version, ready to prove."""

    version: ScenarioVersion
    scenario: ProvedScenario


def request_proof(version: SuiteVersion, *, by: User | None, max_usd: float | None = None) -> SuiteProof:
    """Return the pending proof of a suite version; store one and wake a worker if there is none.

    `max_usd` is what judges may cost; without it none is asked.
    """
    now = timezone.now()
    newest = version.proofs.first()
    if newest is not None and newest.is_waiting(now=now):
        return newest
    proof, job = _create(version, by, max_usd=max_usd)
    wakeups.wake_for_job(job)
    return proof


def prove_here(version: SuiteVersion, *, by: User | None, max_usd: float | None = None) -> SuiteProof:
    """Prove a suite version in this process, store the result and return it.

    Raises `RequestError` if proofs can't run here.
    """
    proof, job = _create(version, by, max_usd=max_usd)
    run_job(job.pk, make_proof)
    proof.refresh_from_db()
    if proof.error:
        raise RequestError(proof.error)
    return proof


def _create(
    version: SuiteVersion, by: User | None, *, max_usd: float | None = None
) -> tuple[SuiteProof, Job]:
    known = by if getattr(by, "pk", None) else None
    with write_transaction():
        proof = SuiteProof.objects.create(suite_version=version, by=known, max_usd=max_usd)
        job = request_job(Job.Kind.PROOF, proof.pk, expires=proof.created + proof.PATIENCE)
        audit.append_event(
            version.suite.project, by, "suite.prove", version.suite.slug, version=version.number
        )
    return proof, job


def make_proof(job: Job) -> None:
    """Make a requested proof; a failure becomes its result."""
    related = ("suite_version__suite__project", "suite_version__guidance")
    proof = SuiteProof.objects.select_related(*related).filter(pk=job.subject, finished=None).first()
    if proof is None:
        return
    version = proof.suite_version
    setting = None
    # Kept if this process is stopped.
    proof.error = "The proof was interrupted. Prove the suite again."
    try:
        setting = setting_of(version, proof.max_usd)
        for stored in retry_when_lost(lambda: list(stored_scenarios(version))):
            _store(job, proof, stored, prove(stored.scenario, setting))
        proof.error = ""
    except (ProviderError, RequestError, CannotStore) as error:
        proof.error = make_storable(str(error))
    finally:
        ended = {
            "error": proof.error,
            "finished": timezone.now(),
            "cost_usd": setting.judge.spent if setting and setting.judge else 0.0,
        }
        # What was thought lost has ended already.
        held = SuiteProof.objects.filter(pk=proof.pk, finished=None)
        retry_when_lost(lambda: held.update(**ended))
    version.proofs.filter(pk__lt=proof.pk).exclude(finished=None).delete()


def setting_of(version: SuiteVersion, max_usd: float | None = None) -> ProofSetting:
    """Return where a stored suite is proved. Raises `ProviderError` and `RequestError` for wrong settings."""
    names = version.scenario_versions.exclude(fixture=None).values_list("content__fixture", "content__bundle")
    setting = ProofSetting(
        version,
        containment(),
        variables_of(version.suite.project),
        guidance_files(version.guidance),
        frozenset(fixture or bundle for fixture, bundle in names),
    )
    if max_usd is None:
        return setting
    context = setting.idle_agent()
    context.run.project = version.suite.project
    ask = make_judge(context.run, context.target, context.options, setting.variables)
    return replace(setting, judge=JudgeBudget(ask, max_usd))


def stored_scenarios(version: SuiteVersion) -> Iterator[StoredScenario]:
    """Yield a version's scenarios in order."""
    entries = version.entries.select_related("scenario_version__scenario")
    for entry in entries:
        stored = entry.scenario_version
        fixture = stored.fixture_id
        spec = stored.spec
        solution = version.solutions.get(spec.key)
        yield StoredScenario(stored, ProvedScenario(spec, partial(load_fixture, fixture), solution))


def _store(job: Job, proof: SuiteProof, stored: StoredScenario, seal: ScenarioValidation) -> None:
    results = {
        "solution": solution_hash(stored.scenario.solution),
        "seal": seal.seal,
        "reason": make_storable(seal.reason),
        "is_failure": seal.is_failure,
        "held": [make_storable(sentence) for sentence in seal.held],
        "changed": [make_storable(path) for path in seal.changed],
    }

    def store() -> None:
        with write_transaction():
            jobs.hold_job(job)
            ScenarioProof.objects.get_or_create(
                proof=proof, scenario_version=stored.version, defaults=results
            )

    retry_when_lost(store)


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
        "created": format_timestamp(proof.created),
        "finished": format_timestamp(proof.finished) if proof.finished else None,
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
