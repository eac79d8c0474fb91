"""Read the seals of a suite version's scenarios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import F

from evalhub.lib.numbers import format_count
from runs.models import Run, Trial
from runs.models.proof import ScenarioProof, Seal, SuiteProof
from scenarios.models import SuiteVersion
from scenarios.storing import solution_hash

NOT_PROVED_YET = "Not proved yet."
_OF_SCENARIO = ("scenario_version_id", "solution", "seal", "reason", "is_failure", "held", "changed")


@dataclass(frozen=True)
class ScenarioValidation:
    """A scenario's seal and its reason."""

    key: str
    seal: Seal = Seal.UNPROVED
    reason: str = NOT_PROVED_YET
    is_failure: bool = False
    held: tuple[str, ...] = ()
    """Gates that hold before an agent starts, as sentences."""
    changed: tuple[str, ...] = ()
    """Files that gates execute and the reference solution changes."""

    @property
    def is_proved(self) -> bool:
        return self.seal is Seal.PROVED

    @property
    def notes(self) -> list[str]:
        """Return everything a reader should know, as sentences."""
        gates = [f"Holds before an agent starts: {gate}" for gate in self.held]
        return [*filter(None, [self.reason]), *gates]


def validations_of(
    version: SuiteVersion, keys: Mapping[int, str]
) -> tuple[dict[int, ScenarioValidation], SuiteProof | None]:
    """Return the seals of a suite version by scenario version, and its last proof; `keys` are its scenarios' keys.

    A proof with another solution than the stored one no longer counts. One query.
    """
    columns = {name: F(f"scenarios__{name}") for name in _OF_SCENARIO}
    proofs = list(
        SuiteProof.objects.filter(suite_version=version).annotate(**columns).order_by("pk", "scenarios")
    )
    validations = {pk: ScenarioValidation(key) for pk, key in keys.items()}
    for proof in proofs:
        row = ScenarioProof(**{name: vars(proof)[name] for name in _OF_SCENARIO})
        key = keys.get(row.scenario_version_id)
        if key is not None and row.solution == solution_hash(version.solutions.get(key)):
            validations[row.scenario_version_id] = _seal(key, row)
    return validations, proofs[-1] if proofs else None


def validations_of_proof(proof: SuiteProof) -> list[ScenarioValidation]:
    """Return the seals that one proof found, in the suite's order. One query."""
    rows = proof.scenarios.select_related("scenario_version__scenario")
    return [_seal(row.scenario_version.scenario.key, row) for row in rows]


def solution_changes(version: SuiteVersion) -> dict[int, frozenset[str]]:
    """Return the executed files that reference solutions change, by scenario version; none unless proved. Two queries."""
    if not version.solutions:
        return {}
    entries = version.entries.values_list("scenario_version_id", "scenario_version__scenario__key")
    solutions = {pk: solution_hash(version.solutions[key]) for pk, key in entries if key in version.solutions}
    rows = ScenarioProof.objects.filter(scenario_version__in=solutions).exclude(changed=[]).order_by("pk")
    proved = rows.values_list("scenario_version_id", "solution", "changed")
    return {pk: frozenset(changed) for pk, solution, changed in proved if solution == solutions[pk]}


def passing_without_agent(run: Run) -> list[str]:
    """Return the keys of a run's scenarios that pass without an agent. One query."""
    rows = ScenarioProof.objects.filter(
        proof__suite_version=run.suite_version_id,
        seal=Seal.NO_AGENT,
        scenario_version__in=Trial.objects.filter(run=run).values("scenario_version"),
    )
    keys = rows.values_list("scenario_version__scenario__key", flat=True)
    return list(keys.order_by("scenario_version__scenario__key").distinct())


def _seal(key: str, row: ScenarioProof) -> ScenarioValidation:
    return ScenarioValidation(
        key,
        Seal(row.seal),
        row.reason,
        row.is_failure,
        tuple(row.held),
        tuple(row.changed),
    )


def count_validations(validations: Iterable[ScenarioValidation]) -> str:
    """Return the sum of seals as a sentence part, such as "2 proved, 1 passes without an agent"."""
    counts = Counter(each.seal for each in validations)
    named = {
        Seal.PROVED: "proved",
        Seal.UNPROVED: "unproved",
        Seal.NO_AGENT: "passing without an agent",
    }
    parts = [f"{counts[seal]} {word}" for seal, word in named.items() if counts[seal]]
    if failing := counts[Seal.SOLUTION_FAILS]:
        parts.append(format_count(failing, "failing solution"))
    return ", ".join(parts)
