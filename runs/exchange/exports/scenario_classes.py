"""Scenarios' classes and their pass^k and pass@k, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runs.models import Run
from runs.results.outcome_history import OutcomeHistory, read_histories
from scenarios.models import Suite, SuiteVersion

USUAL_K = 3


def run_strips(run: Run) -> dict[str, OutcomeHistory]:
    """Return the strips of a run's suite version on the run's target as of the run, by scenario key."""
    by_scenario = read_histories(run.suite, target=run.target_id, up_to=run.pk, version=run.suite_version_id)
    entries = SuiteVersion.scenario_versions.through.objects.filter(suite_version=run.suite_version_id)
    keys = entries.order_by("position").values_list(
        "scenario_version__scenario", "scenario_version__scenario__key"
    )
    return {key: by_scenario.get(pk, OutcomeHistory()) for pk, key in keys}


def scenarios_json(
    suite: Suite, by_key: Mapping[str, OutcomeHistory], retests: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return each scenario's class and chances; `retests` are a run's, as stored."""
    k = suite.release_k or USUAL_K
    fresh = {each["key"]: each["fresh"] for each in retests}
    return [
        {
            "scenario": key,
            "scenario_class": strip.kind.value,
            "class_probability": (evidence := strip.evidence).probability,
            "class_trials": evidence.n,
            "too_few_trials": not evidence.is_enough,
            "passed": strip.rate.passed,
            "trials": strip.rate.n,
            "k": k,
            "pass_hat_k": strip.rate.all_of(k),
            "pass_at_k": strip.rate.any_of(k),
            "retested": {"passed": fresh[key][0], "trials": fresh[key][1]} if key in fresh else None,
        }
        for key, strip in by_key.items()
    ]
