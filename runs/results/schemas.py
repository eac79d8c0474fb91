"""Schemas of runs and trials; `runs.exchange.exports.document` fills them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ninja import Schema

from evalhub.web.rest.columns import add_columns
from evaluators.statistics.looks import InterimLook
from evaluators.statistics.measure_change import MeasureChange
from evaluators.statistics.retest import Retest
from runs.models import CommandRecord, Trial
from runs.models.trial import TrialAttempt
from runs.results.run_rows import ListedRun, TokenTotals


class TokensOut(TokenTotals):
    pass


class RetestedOut(Schema):
    """The fresh trials of a scenario that ran again."""

    passed: int
    trials: int


class ScenarioClassOut(Schema):
    """A scenario's last comparable trials on one target."""

    scenario: str
    scenario_class: str
    """solid, fixed, flaky, broken or new."""
    class_probability: float | None
    """That the true pass rate is in the class's range, given the trials; null for new."""
    class_trials: int
    """The trials that it rests on: those since the change that explains the class, else all without errors."""
    too_few_trials: bool
    """Whether the class is less than 80 % sure."""
    passed: int
    trials: int
    """Without errors."""
    k: int
    """That of the suite's release rule, else 3."""
    pass_hat_k: float | None
    """The chance that k trials all pass; null below k trials."""
    pass_at_k: float | None
    """The chance that at least one of k trials passes."""
    retested: RetestedOut | None = None
    """Its fresh trials in this run; null if it didn't run again."""


class ReleaseResultOut(Schema):
    """A run by its suite's release rule."""

    k: int
    threshold: float
    state: str
    """met, missed or not_measured."""
    value: float | None
    """The mean of pass^k over the scenarios with k trials."""
    scenarios: int
    too_few_trials: list[str]
    """Scenarios with fewer than k trials that passed or failed."""
    sentence: str


class RunRowOut(ListedRun):
    """A run in a list."""

    tokens: TokensOut


class CountingOut(Schema):
    """How a closed run's commands are counted; texts are empty where nothing was measured."""

    rules: str
    """Versions of the counting rules, `1` in runs of releases without one."""
    ends: str
    """Sources of exit codes: recorded, reported, estimated; several by commas."""


class ComparedWithOut(Schema):
    """What a run's verdict was made with."""

    runs: list[int]
    """The runs of its line, newest first; empty if the baseline alone is the reference."""
    since: int | None
    """The run whose undecided regression this one still shows."""
    is_pinned: bool
    compared: str
    """When; a run of the line that changed later doesn't change the verdict."""


@dataclass(frozen=True, kw_only=True)
class LookOut(InterimLook):
    """One look at a run until a verdict."""

    against: int
    """The run that it compared with."""
    trials: tuple[int, int]
    """Trials so far that count, before and after."""
    information: float
    """What is known of the pass rate's change, as a share of that at the limit of trials."""
    reason: str
    """Why no trial followed although the limit of trials wasn't reached; else empty."""


@dataclass(frozen=True, kw_only=True)
class RetestOut(Retest):
    """A scenario that ran again, with what its fresh trials show."""

    sentence: str


class RunOut(RunRowOut):
    """A run with its changes against the baseline, by scenario key."""

    uuid: str
    """The run's id outside of this evalhub: `runId` of its EvalSuiteResult."""
    waits: str | None
    """What an open run waits for if no worker online may work on it, as a sentence."""
    fingerprint: dict[str, Any]
    warnings: list[str]
    tampered: int
    """Trials whose agent changed what decides its gates; their `warnings` say what."""
    cost_notes: list[str]
    """What its trials' costs are to be read with, such as cost limits that stopped agents; a sentence each."""
    regressions: list[str]
    new_passes: list[str]
    added: list[str]
    removed: list[str]
    not_comparable: dict[str, list[str]]
    """Scenarios whose task, gates, judge or rubric changed, and which of them; neither regressions nor new passes."""
    measures: list[MeasureChange]
    """The headline measures compared with what `compared_with` says, then others with the baseline; else empty."""
    compared_with: ComparedWithOut | None
    """Null without a verdict, and in runs that an older release compared."""
    looks: list[LookOut]
    """The looks of a run until a verdict, the first one first; the verdict has the levels of the last one."""
    retests: list[RetestOut]
    """Scenarios that ran again; their fresh trials are marked with `retest`, and no rate counts them."""
    counting: CountingOut
    """Of the headline measures of a closed run."""
    scenarios: list[ScenarioClassOut]
    """Each scenario's class as of this run."""
    release_rule: ReleaseResultOut | None
    """Null if the suite has no release rule or the run is open."""


class GateOut(Schema):
    type: str
    passed: bool | None
    message: str
    detail: dict[str, Any]


class ScoreOut(Schema):
    layer: str
    name: str
    value: float | None
    passed: bool | None
    message: str
    error: str | None = None
    metrics: Any = None
    """What an evaluator script reported beside its score."""
    verdict: str | None = None
    """Of an evaluator of AgentV: pass, borderline or fail; null for the aggregate."""
    hits: list[str] | None = None
    misses: list[str] | None = None
    reasoning: str | None = None


class JudgingOut(Schema):
    """One judge call in a trial's document."""

    name: str
    """The evaluator that asked the judge; `judge` or `judging` of a scenario's own judge."""
    score: float | None
    passed: bool | None
    recomputed: float | None
    criteria: dict[str, float] | None
    reasons: dict[str, str] | None
    """The judge's reason for each criterion, where it gave one."""
    positives: list[str] | None
    negatives: list[str] | None
    reasoning: str | None
    confidence: float | None
    mismatch: bool | None
    missing: list[str] | None
    model: str
    cost_usd: float | None
    error: str


class ProtectedOut(Schema):
    restored: list[str]
    """Protected files that the agent changed or removed; they were laid again before scripts and gates."""
    set_aside: list[str]
    """Files that the agent added where a pattern matches; they were taken away."""


class UsageOut(Schema):
    """A model's tokens. The parts are null where they aren't known."""

    input: int
    """All input tokens, those of the cache included."""
    output: int | None
    """All output tokens, those of reasoning included."""
    cache_read: int | None = None
    """Input tokens read from the provider's cache."""
    cache_write: int | None = None
    """Input tokens written to the cache, for 5 minutes or without a known lifetime."""
    cache_write_1h: int | None = None
    """Input tokens written to the cache for an hour."""
    reasoning: int | None = None


class TrialCostOut(Schema):
    """How a trial's cost is known."""

    reported_usd: float | None
    """By the agent or service itself; it is the trial's cost then."""
    computed_usd: float | None
    """By tokens and price."""
    differs: bool
    """Whether both are known and more than a tenth apart."""
    cached_in_full: bool
    """Whether cached tokens are charged as much as others."""
    limit: str
    """What became of the scenario's cost limit, if the agent reached it; else empty."""


@add_columns(
    TrialAttempt,
    *("number", "state", "error", "error_kind", "worker", "seconds", "exit_code", "cost_usd"),
)
class AttemptOut(Schema):
    """How a trial ended before it was retried or resumed."""

    started: datetime | None
    finished: datetime | None


@add_columns(
    CommandRecord,
    *("n", "line", "subcommand", "exit_code", "failed", "help", "retry_of", "event"),
    *("failure", "end", "at_least", "seconds"),
)
class CommandOut(Schema):
    """A command of the tool under test."""


@add_columns(
    Trial,
    *("id", "index", "state", "completed", "timed_out", "exit_code", "seconds"),
    *("composite", "cost_usd", "error", "error_kind"),
)
class TrialFields(Schema):
    """One execution of a scenario."""

    scenario: str
    retest: bool
    """Whether it is a fresh trial of a scenario that ran again, which no rate counts."""
    outcome: str | None


class TrialOut(TrialFields):
    """One execution of a scenario, with the scores of every layer."""

    status: str | None
    """The aggregate's status in AgentV suites: pass, fail or error; otherwise the outcome."""
    vacuous: bool = False
    """Whether it passed without any gate, assertion, evaluator or judge that checked it."""
    reason: str
    """Why the trial failed, in one line; empty unless it did."""
    trace_summary: dict[str, Any] | None
    """AgentV's summary of the trace; null without a trace."""
    interaction: dict[str, Any]
    gates: list[GateOut]
    scores: list[ScoreOut]
    judgings: list[JudgingOut]
    warnings: list[str]
    """What a reader of its figures must know, such as a cost limit that stopped the agent; a sentence each."""
    protected: ProtectedOut | None = None
    """What the agent did to files that are not its task; null if nothing."""
    diagnosis: list[Any]
    exposure: dict[str, Any] | None = None
    """How far the run's guidance got: delivered, in_context, opened, quoted; null without guidance."""
    usage: UsageOut | None
    price_source: str
    """Where the cost comes from: the agent, the project's price or litellm's; empty if unknown."""
    cost: TrialCostOut | None = None
    """How the cost is known; null for trials of older releases."""
    answer: str
    artifacts: list[str]
    attempts: list[AttemptOut] = []
    """Earlier attempts; only in the answer for one trial."""
    commands: list[CommandOut] = []
    """Those of the tool under test, in order; only in the answer for one trial."""


class TrialRowOut(TrialFields):
    """A trial in a list."""

    run: int


class RunDocumentOut(Schema):
    """A run, and its trials if requested."""

    run: RunOut
    trials: list[TrialOut] | None = None


class LaunchedOut(Schema):
    launch: int
    runs: list[int]


class LaunchOut(Schema):
    id: int
    by: str | None
    trigger: str
    created: str
    priority: str
    """low, normal or high: which launches of the project get its lanes first."""
    request: dict[str, Any]
    runs: list[int]
