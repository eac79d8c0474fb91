"""Export a stored run of any format as tool-forge's EvalSuiteResult."""

from __future__ import annotations

from typing import cast

import msgspec

from evaluators.grading.suite_result import CaseResult, CaseTrial, EarlierResult, SuiteRun, trial_result
from evaluators.model import Outcome, Score
from evaluators.redaction import redact_json, redact_patterns
from runs.compare.comparison import incomparable, passes
from runs.compare.retests import retest_json, retests_of
from runs.models import Run, Trial
from runs.models.trial import TrialState

TIER = "golden"
"""Tier of suites whose format has none."""


def suite_run(run: Run) -> SuiteRun:
    """Return a run's data for an EvalSuiteResult. Expects suite_version and target to be loaded."""
    config, staleness = run.suite_version.config, run.fingerprint.get("staleness") or {}
    endpoint = run.fingerprint.get("endpoint", run.target.definition.get("url"))
    rows = run.trial_set.filter(state=TrialState.FINISHED).order_by("position")
    return SuiteRun(
        run_id=run.shown_id,
        number=run.pk,
        timestamp=(run.started or run.created).isoformat().replace("+00:00", "Z"),
        tier=config.get("tier") or TIER,
        tool_name=config.get("tool") or run.suite.slug,
        agent_endpoint=endpoint or run.target.name,
        cases=_cases(run),
        tool_version=staleness.get("tool_version") or run.tool_version or None,
        description_hash=staleness.get("description_hash"),
        registry_size=staleness.get("registry_size"),
        eval_file_hash=config.get("eval_file_hash") or run.suite_version.sha256[:12],
        staleness_warnings=tuple(staleness.get("warnings") or ()),
        stale=bool(staleness.get("stale")),
        generated_hash=staleness.get("generated_hash"),
        baseline=_baseline(run),
        origin={
            "scenarios": dict(rows.values_list("scenario__key", "scenario_version__sha256")),
            "suite": run.suite.slug,
            "format": run.suite.format,
            "state": run.state,
            "target": run.target.name,
            "model": run.model or None,
            "guidance": run.guidance.sha256 if run.guidance else None,
            **({"retests": [retest_json(each) for each in retests]} if (retests := retests_of(run)) else {}),
        },
    )


def _baseline(run: Run) -> EarlierResult | None:
    if filed := run.options.get("baseline_file"):
        return EarlierResult(filed["run_id"], filed["passed"])
    if run.baseline is None:
        return None
    return EarlierResult(
        run.baseline.imported_id or run.baseline.shown_id,
        passes(run.baseline.pk),
        incomparable(run.baseline, run),
        run.baseline.pk,
    )


def _cases(run: Run) -> tuple[CaseResult, ...]:
    first = run.trial_set.filter(round=0, state=TrialState.FINISHED)
    trials = first.select_related("scenario", "scenario_version")
    by_key: dict[str, list[Trial]] = {}
    for trial in trials:
        by_key.setdefault(trial.scenario.key, []).append(trial)
    return tuple(_case(key, repeated) for key, repeated in by_key.items())


def _case(key: str, trials: list[Trial]) -> CaseResult:
    description = redact_patterns(trials[0].scenario_version.content.get("description", ""))
    ordered = sorted(trials, key=lambda trial: trial.index)
    return CaseResult(key, description, tuple(case_facts(trial) for trial in ordered))


def case_facts(trial: Trial) -> CaseTrial:
    """Return one trial's contract fields; texts are redacted."""
    return trial_result(
        cast(Outcome, trial.outcome),
        msgspec.convert(redact_json(trial.scores), tuple[Score, ...]),
        tools_called=trial.detail.get("tools_called", ()),
        answer=trial.answer,
        seconds=trial.seconds,
        error=redact_patterns(trial.error),
        cost_usd=trial.cost_usd,
    )
