"""Gates, rubrics and judges that a person adopted for a run, in place of those of its suite's version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from evaluators.statistics.comparability import Standard
from runs.models import ReassessedTrial, Reassessment, Run, Trial
from runs.models.trial import TrialState

ADOPTED = "adopted"
"""In a run's fingerprint: for each scenario its key and name, and the hashes that count."""
Key = TypeVar("Key", int, str)


def adopted_parts(fingerprint: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the adopted hashes by the scenario's key, with its `pk`; empty for a run as it was recorded."""
    return {each["key"]: each["parts"] for each in fingerprint.get(ADOPTED) or ()}


def parts_by_pk(rows: Iterable[Mapping[str, Any]] | None) -> dict[int, dict[str, str]]:
    """Return the adopted hashes by the scenario's primary key, from the value in the fingerprint."""
    return {each["pk"]: each["parts"] for each in rows or ()}


def with_adopted(
    standards: Mapping[Key, Standard], adopted: Mapping[Key, Mapping[str, str]]
) -> dict[Key, Standard]:
    """Return a run's standards with the adopted parts."""
    return {key: each._replace(**adopted.get(key, {})) for key, each in standards.items()}


def record_adopted(run: Run, reassessment: Reassessment, rows: Iterable[ReassessedTrial]) -> None:
    """Write in the run's fingerprint by which gates, rubric and judge its scores were made.

    If only some trials of a scenario have new scores, it isn't compared with other runs.
    """
    known = {each["pk"]: dict(each) for each in run.fingerprint.get(ADOPTED) or ()}
    done: dict[int, list[ReassessedTrial]] = {}
    for row in rows:
        done.setdefault(row.trial.scenario_id, []).append(row)
    scored = Trial.objects.filter(run=run, state=TrialState.FINISHED, outcome__in=("pass", "fail"))
    others = set(
        scored.exclude(
            pk__in=[row.trial_id for scenario_rows in done.values() for row in scenario_rows]
        ).values_list("scenario", flat=True)
    )
    keys = dict(scored.values_list("scenario", "scenario__key"))
    for scenario, scenario_rows in done.items():
        parts = _parts(reassessment, scenario_rows)
        if scenario in others:
            parts = dict.fromkeys(parts, f"partly, run {run.pk}")
        before = known.get(scenario, {}).get("parts", {})
        known[scenario] = {"pk": scenario, "key": keys.get(scenario, ""), "parts": {**before, **parts}}
    run.fingerprint = {**run.fingerprint, ADOPTED: list(known.values()), **_readable_parts(reassessment)}
    run.save(update_fields=["fingerprint"])


def _parts(reassessment: Reassessment, rows: list[ReassessedTrial]) -> dict[str, str]:
    if reassessment.kind == Reassessment.Kind.GRADE:
        hashes = {row.graded_by.gates_hash if row.graded_by else "" for row in rows}
        return (
            {"gates": hashes.pop()} if len(hashes) == 1 else {"gates": f"several, run {reassessment.run_id}"}
        )
    parts = (
        {"judge_model": f"{reassessment.judge_model} {reassessment.judge_sha256}"}
        if reassessment.judge_model
        else {}
    )
    return {**parts, **({"rubric": reassessment.rubric_hash} if reassessment.rubric else {})}


def _readable_parts(reassessment: Reassessment) -> dict[str, str]:
    """Return the readable parts of the fingerprint, for causes and differences."""
    if reassessment.kind == Reassessment.Kind.GRADE:
        return {"gates": f"graded again, {reassessment.pk}"}
    judge = (
        {"judge": reassessment.judge_model, "judge_sha256": reassessment.judge_sha256}
        if reassessment.judge_model
        else {}
    )
    return {**judge, **({"rubric": reassessment.rubric_hash} if reassessment.rubric else {})}
