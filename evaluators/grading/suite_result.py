"""Build the EvalSuiteResult of a run (tool-forge eval runner, Output Format and Baseline Diffing)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from msgspec import Struct, convert, structs

from evaluators.grading.assertions import VERDICT, CaseVerdict
from evaluators.model import Json, Outcome, Score
from evaluators.statistics.comparability import Reasons


class CaseTrial(Struct, frozen=True):
    """One trial of a case."""

    outcome: Outcome
    seconds: float | None = None
    """None if not recorded."""
    verdict: CaseVerdict = CaseVerdict(passed=True)
    """On the assertions, else of the deciding scores; its error may be the cause of a trial with outcome error."""
    tools_called: tuple[str, ...] = ()
    response_length: int = 0
    """In characters."""
    cost_usd: float | None = None


class CaseResult(Struct, frozen=True):
    """A case with one or more trials."""

    id: str
    description: str
    trials: tuple[CaseTrial, ...]

    @property
    def passed(self) -> bool:
        """Whether there is a trial without error, and all of these passed."""
        counted = [trial.outcome for trial in self.trials if trial.outcome != "error"]
        return bool(counted) and set(counted) == {"pass"}

    @property
    def shown_trial(self) -> CaseTrial:
        """The trial shown for the case: the first that failed, else passed, else had an error."""
        order = ("fail", "pass", "error")
        return min(self.trials, key=lambda trial: order.index(trial.outcome))

    @property
    def duration_ms(self) -> int | None:
        """The mean over trials with a known time; None without any."""
        known = [trial.seconds for trial in self.trials if trial.seconds is not None]
        return _milliseconds(fmean(known)) if known else None


class Comparison(Struct, frozen=True):
    """Changes against a baseline by case id; errors count as failed."""

    regressions: tuple[str, ...] = ()
    new_passes: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    not_comparable: Mapping[str, Reasons] = {}
    """Cases that both have and that are neither, with what changed about them."""


class EarlierResult(Struct, frozen=True):
    """An earlier run: whether each of its cases passed."""

    run_id: str
    passed: Mapping[str, bool]
    not_comparable: Mapping[str, Reasons] = {}
    """Cases whose task, gates, judge or rubric changed since, with which of them did."""
    number: int | None = None
    """The run's number where it is stored."""


class SuiteRun(Struct, frozen=True):
    """The data of an EvalSuiteResult."""

    run_id: str
    timestamp: str
    """The start of the run, ISO 8601."""
    tier: str
    tool_name: str | None
    agent_endpoint: str
    cases: tuple[CaseResult, ...]
    number: int | None = None
    """The run's number where it is stored; None if it is not."""
    tool_version: str | None = None
    description_hash: str | None = None
    """The current hash."""
    registry_size: int | None = None
    eval_file_hash: str | None = None
    staleness_warnings: tuple[str, ...] = ()
    stale: bool = False
    generated_hash: str | None = None
    """The description hash in the eval file."""
    baseline: EarlierResult | None = None
    origin: Mapping[str, Json] = {}
    """What an import needs beyond the contract: suite, its format, the run's state, target, model, and hashes."""

    @property
    def comparison(self) -> Comparison:
        """The changes against the baseline as the contract defines them, by passed and failed alone; none without one."""
        if self.baseline is None:
            return Comparison()
        return compare_passes(self.baseline.passed, {case.id: case.passed for case in self.cases})

    @property
    def not_comparable(self) -> Mapping[str, Reasons]:
        """The cases of both runs whose task, gates, judge or rubric changed, with which of them did."""
        known = self.baseline.not_comparable if self.baseline else {}
        return {case.id: known[case.id] for case in self.cases if case.id in known}


def trial_result(
    outcome: Outcome,
    scores: Sequence[Score],
    *,
    tools_called: Sequence[str] = (),
    answer: str = "",
    seconds: float | None = None,
    error: str = "",
    cost_usd: float | None = None,
) -> CaseTrial:
    """Return a trial's result from its verdict on the assertions, else from its deciding scores.

    `error` is the cause of a trial with outcome error.
    """
    verdicts = (score for score in scores if score.layer == "assertions" and score.name == VERDICT)
    failed = [f"{score.name}: {score.message}" for score in scores if score.passed is False]
    decided = sum(score.passed is not None for score in scores)
    detail = {"passed": not failed, "assertions_run": decided, "all_failures": failed}
    verdict = convert({**detail, **next((score.detail for score in verdicts), {})}, CaseVerdict)
    cause = error if outcome == "error" else verdict.error or "".join(failed[:1])
    verdict = structs.replace(verdict, error=cause)
    return CaseTrial(outcome, seconds, verdict, tuple(tools_called), len(answer), cost_usd)


def compare_passes(
    before: Mapping[str, bool], after: Mapping[str, bool], not_comparable: Mapping[str, Reasons] | None = None
) -> Comparison:
    """Compare two runs by case id, in the order of the current one; cases that are not comparable are left out."""
    left_out = {id: why for id, why in (not_comparable or {}).items() if id in before and id in after}
    common = [id for id in after if id in before and id not in left_out]
    return Comparison(
        regressions=tuple(id for id in common if before[id] and not after[id]),
        new_passes=tuple(id for id in common if after[id] and not before[id]),
        added=tuple(id for id in after if id not in before),
        removed=tuple(id for id in before if id not in after),
        not_comparable=left_out,
    )


def suite_result(run: SuiteRun) -> dict[str, Json]:
    """Return the EvalSuiteResult: the contract's fields in order, then evalhub's own."""
    comparison = run.comparison
    return {
        "runId": run.run_id,
        "timestamp": run.timestamp,
        "tier": run.tier,
        "toolName": run.tool_name,
        "agentEndpoint": run.agent_endpoint,
        "metadata": {
            "toolVersion": run.tool_version,
            "descriptionHash": run.description_hash,
            "registrySize": run.registry_size,
            "evalFileHash": run.eval_file_hash,
        },
        "stalenessWarnings": list(run.staleness_warnings),
        "cases": [_case(case) for case in run.cases],
        "summary": total_cases(run.cases),
        "baselineRunId": run.baseline.run_id if run.baseline else None,
        "regressions": list(comparison.regressions),
        "newPasses": list(comparison.new_passes),
        "added": list(comparison.added),
        "removed": list(comparison.removed),
        "notComparable": {id: list(why) for id, why in run.not_comparable.items()},
        "stale": run.stale,
        **({} if run.number is None else {"runNumber": run.number}),
        **({"evalhub": dict(run.origin)} if run.origin else {}),
    }


def total_cases(cases: Sequence[CaseResult]) -> dict[str, Json]:
    """Return the totals of the cases."""
    passed = sum(case.passed for case in cases)
    return {
        "totalCases": len(cases),
        "passed": passed,
        "failed": len(cases) - passed,
        "skippedAssertions": sum(case.shown_trial.verdict.assertions_skipped for case in cases),
        "totalDurationMs": total_duration(cases),
        "estimatedCostUsd": _cost(cases),
    }


def total_duration(cases: Sequence[CaseResult]) -> int | None:
    """Return the sum over cases with a known time; None if no case has one."""
    known = [case.duration_ms for case in cases if case.duration_ms is not None]
    return sum(known) if known or not cases else None


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def _cost(cases: Sequence[CaseResult]) -> float | None:
    """Return the total cost; None if any trial's cost is unknown, because a partial sum would mislead."""
    trials = [trial for case in cases for trial in case.trials if trial.outcome != "error"]
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    return sum(costs) if trials and len(costs) == len(trials) else None


def _case(case: CaseResult) -> dict[str, Json]:
    trial = case.shown_trial
    error = {} if case.passed else {"error": _error(trial)}
    details = _details(trial)
    if len(case.trials) > 1:
        details["trials"] = [
            {
                "passed": each.outcome == "pass",
                "durationMs": _milliseconds(each.seconds),
                "assertionsRun": each.verdict.assertions_run,
                "assertionsSkipped": each.verdict.assertions_skipped,
                **({} if each.outcome == "pass" else {"error": _error(each)}),
                **_details(each),
            }
            for each in case.trials
        ]
    return {
        "id": case.id,
        "description": case.description,
        "passed": case.passed,
        "durationMs": case.duration_ms,
        "assertionsRun": trial.verdict.assertions_run,
        "assertionsSkipped": trial.verdict.assertions_skipped,
        **error,
        "details": details,
    }


def _error(trial: CaseTrial) -> str:
    return f"agent error: {trial.verdict.error}" if trial.outcome == "error" else trial.verdict.error


def _details(trial: CaseTrial) -> dict[str, Json]:
    details: dict[str, Json] = {
        "toolsCalled": list(trial.tools_called),
        "responseLength": trial.response_length,
        "skippedTokens": list(trial.verdict.skipped_tokens),
    }
    if trial.verdict.all_failures:
        details["allFailures"] = list(trial.verdict.all_failures)
    flags = {"vacuous": trial.verdict.vacuous, "infrastructure": trial.outcome == "error"}
    return details | {name: True for name, holds in flags.items() if holds}
