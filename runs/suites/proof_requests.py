"""Proofs of stored suites: requested on a page or by REST, and made by a worker or by a command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.lib.storable_text import storable
from evalhub.teams import audit
from runs.db.disk import CannotStore
from runs.db.request_job import request_job
from runs.db.retry import retry_when_lost
from runs.db.transactions import write_transaction
from runs.engine.context import load_fixture
from runs.engine.judges import make_judge
from runs.engine.proof_agents import JudgeBudget, ProofSetting
from runs.errors import ProviderError, RequestError
from runs.models import Job, ScenarioProof, SuiteProof
from runs.results.validations import ScenarioValidation
from runs.sandbox.worker_settings import containment, variables_of
from runs.suites.prove import ProvedScenario, prove
from runs.workers import jobs, wakeups
from runs.workers.job_runner import run_job
from scenarios.hashing import solution_hash
from scenarios.models import ScenarioVersion, SuiteVersion
from scenarios.storing import guidance_files


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
    wakeups.wake(job)
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
        proof.error = storable(str(error))
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
        "reason": storable(seal.reason),
        "is_failure": seal.is_failure,
        "held": [storable(sentence) for sentence in seal.held],
        "changed": [storable(path) for path in seal.changed],
    }

    def store() -> None:
        with write_transaction():
            jobs.hold(job)
            ScenarioProof.objects.get_or_create(
                proof=proof, scenario_version=stored.version, defaults=results
            )

    retry_when_lost(store)
