"""Compute stored trials' costs again by the current rules: cached tokens at their price, from raw output."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from msgspec import structs

from evalhub.teams.models import Project
from evaluators.grading.costs import (
    COST_RULES,
    NO_RATE,
    UNKNOWN_COUNT,
    Computed,
    TrialCost,
    compute,
    usage_parts,
)
from evaluators.model import Price, Transcript, Usage
from runs.engine.stored_trials.recomputing import (
    BATCH,
    Recomputed,
    RunRecomputed,
    batches,
    closed_runs_behind,
    compare_recomputed,
    recompute_runs,
)
from runs.engine.stored_trials.stored_output import agent_parser, definition_of, read_stored
from runs.models import Run, TranscriptRecord, Trial
from runs.models.price import prices_of
from runs.models.run import Trigger
from runs.models.trial import TrialState, json_of
from runs.results.rollups import write_rollups
from runs.results.trial_costs import sum_tokens
from runs.targets.pricing import price_lookup
from runs.targets.providers.prices import REPORTED, litellm_price, price_source, without_cache
from runs.targets.providers.registry import MODELS

REPRICED = "repriced"
"""The run's version of the rules."""
IN_FULL = ", cached tokens in full"
"""After the price source of costs that can't be computed again, so that they are not compared with others."""
SELF_REPORTING = frozenset(("claude_code", "opencode"))
"""Agents that report a cost at the end of a session."""
SHAPES = ("output_field", "tool_calls_field")
"""Fields of an `http` target whose answers only it can read."""


class NewCost(NamedTuple):
    """A trial's cost by the current rules."""

    usd: float | None
    source: str
    cost: TrialCost
    read: Transcript | None = None
    """The session as read again, with its usage; None if that stays as stored."""


def runs_to_reprice(project: Project | None = None) -> QuerySet[Run]:
    """Return the closed runs whose costs were computed by older rules, oldest first."""
    return closed_runs_behind(REPRICED, COST_RULES, project)


def reprice(
    project: Project | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
    batch_done: Callable[[], None] = lambda: None,
    batch: int = BATCH,
) -> Recomputed:
    """Compute the costs of every run behind again; `progress` gets the runs done and their number.

    One transaction for each batch of trials, with the run's sums, and one for the rollups and comparisons of a run,
    so that an interruption loses at most a batch.
    """
    keys = list(runs_to_reprice(project).values_list("pk", flat=True))
    return recompute_runs(keys, lambda run: _reprice_run(run, batch, batch_done), progress)


def _reprice_run(run: Run, batch: int, batch_done: Callable[[], None]) -> RunRecomputed:
    priced = unchanged = 0
    prices = _Prices(run)
    for keys in batches(_trials(run).values_list("pk", flat=True), batch):
        with transaction.atomic():
            rows = _trials(run).filter(pk__in=keys).select_for_update(of=("self",))
            for trial in rows.defer("scores", "answer"):
                new_cost = _cost_again(run, trial, prices)
                unchanged += new_cost.cost.in_full == UNKNOWN_COUNT
                priced += new_cost.cost.in_full != UNKNOWN_COUNT
                _store(trial, new_cost)
        batch_done()
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).select_related("project").get(pk=run.pk)
        locked.repriced = COST_RULES
        fields = [REPRICED]
        if run.trigger == Trigger.IMPORT:
            fields += sum_tokens(locked)
        locked.save(update_fields=fields)
        compared = 0
        # Some may have been computed before an interruption.
        if run.trial_set.filter(detail__cost__rules=COST_RULES).exists():
            write_rollups(locked)
            compared = compare_recomputed(locked, REPRICED, COST_RULES)
    return RunRecomputed(priced, unchanged, compared)


def _trials(run: Run) -> QuerySet[Trial]:
    """Return the run's trials whose costs are by older rules; imported ones have no cost of evalhub's."""
    older = Q(detail__cost__rules__isnull=True) | Q(detail__cost__rules__lt=COST_RULES)
    known = Q(cost_usd__isnull=False) | Q(tokens_in__isnull=False)
    trials = Trial.objects.filter(older, known, run=run, state=TrialState.FINISHED)
    return (trials.none() if run.trigger == Trigger.IMPORT else trials).order_by("pk")


class _Prices:
    """The prices of a run's target: the project's as of a day, else the suite's, else litellm's current ones."""

    def __init__(self, run: Run) -> None:
        self._kind = run.target.provider
        self._own = prices_of(run.project_id, run.suite_version.config)
        self.of_day = cache(self._of_day)

    def _of_day(self, day: str) -> Callable[[str], Price | None]:
        return cache(price_lookup(self._kind, self._own, day))


def _cost_again(run: Run, trial: Trial, prices: _Prices) -> NewCost:
    """Return a trial's cost: reported or by the tokens of its raw output, else the stored one."""
    stored = _stored_source(run, trial)
    read = read_stored(trial, _parser(run))
    if read is None or read.usage is None:
        return _keep_cost(run, trial, stored)
    computed = _compute_cost(run, trial, read, prices)
    reported = read.cost_usd
    if reported is None and stored == REPORTED:
        reported = trial.cost_usd
    if reported is not None:
        comparable = None if computed is None or computed.in_full else computed.usd
        return NewCost(reported, REPORTED, TrialCost(reported=reported, computed=comparable), read)
    if computed is None:
        return _keep_cost(run, trial, stored)
    cost = TrialCost(computed=computed.usd, in_full=NO_RATE if computed.in_full else "")
    return NewCost(computed.usd, price_source(computed.usd, computed.prices), cost, read)


def _compute_cost(run: Run, trial: Trial, read: Transcript, prices: _Prices) -> Computed | None:
    model = run.model or str(definition_of(run).get("model") or "")
    day = trial.finished.date().isoformat() if trial.finished else ""
    return compute(read.usage or Usage(), read.usage_by_model, model, prices.of_day(day))


def _parser(run: Run) -> str:
    definition = definition_of(run)
    if run.target.provider == "http" and not any(definition.get(name) for name in SHAPES):
        return "chat"
    return agent_parser(run)


def _stored_source(run: Run, trial: Trial) -> str:
    """Return where a stored cost comes from; releases before that was stored computed it only where nothing reported it."""
    source = str(trial.detail.get("price_source") or "")
    if source or trial.cost_usd is None:
        return source
    kind = run.target.provider
    if kind in SELF_REPORTING:
        return REPORTED if trial.completed else "computed"
    return "computed" if kind == "codex" else ""


def _keep_cost(run: Run, trial: Trial, source: str) -> NewCost:
    """Return a trial's stored cost.

    litellm counted the cache of a model's answers, but of those from a batch. No agent's report and no unknown
    source counts it in full.
    """
    cost = trial.cost_usd
    if source in ("", REPORTED) or cost is None:
        return NewCost(cost, source, TrialCost(reported=cost if source == REPORTED else None))
    is_model = run.target.provider in MODELS
    if is_model and source.startswith("litellm ") and not run.batches.exists():
        return NewCost(cost, _current_source(source), TrialCost(computed=cost))
    if is_model or run.target.provider not in ("mock", "replay"):
        return NewCost(cost, source + IN_FULL, TrialCost(computed=cost, in_full=UNKNOWN_COUNT))
    return NewCost(cost, source, TrialCost(computed=cost))


def _current_source(source: str) -> str:
    """Return the source of a cost by litellm as it is named now, with the rates of the cache, if the price is the same."""
    price = _litellm_price(source.split(" ")[1])
    is_same = price and source == price_source(0.0, (without_cache(price),))
    return price_source(0.0, (price,)) if price and is_same else source


_litellm_price = cache(litellm_price)


def _store(trial: Trial, new_cost: NewCost) -> None:
    """Replace a trial's cost and tokens, and add the differences to its run's sums. Requires a transaction."""
    usage = new_cost.read.usage if new_cost.read else None
    before = (trial.cost_usd or 0.0, trial.tokens_in or 0, trial.tokens_out or 0)
    was_known = trial.cost_usd is not None
    trial.cost_usd = new_cost.usd
    if usage is not None:
        trial.tokens_in, trial.tokens_out = usage.input, usage.known_output
    detail: dict[str, Any] = {**trial.detail, "cost": json_of(new_cost.cost)}
    if new_cost.source:
        detail["price_source"] = new_cost.source
    if usage is not None:
        detail["usage"] = usage_parts(usage)
    trial.detail = detail
    trial.save(update_fields=["cost_usd", "tokens_in", "tokens_out", "detail"])
    if new_cost.read is not None:
        _store_usage(trial, new_cost.read)
    cost, read, written = (
        new - old
        for new, old in zip(
            (trial.cost_usd or 0.0, trial.tokens_in or 0, trial.tokens_out or 0), before, strict=True
        )
    )
    changes: dict[str, Any] = {"tokens_in": F("tokens_in") + read, "tokens_out": F("tokens_out") + written}
    if was_known or trial.cost_usd is not None:
        changes["cost_usd"] = Coalesce(F("cost_usd"), 0.0) + cost
        changes["retest_usd"] = F("retest_usd") + (cost if trial.is_retest else 0.0)
    if cost or read or written:
        Run.objects.filter(pk=trial.run_id).update(**changes)


def _store_usage(trial: Trial, read: Transcript) -> None:
    """Replace the usage of a trial's stored transcript; commands name its events by their place, so these stay."""
    record = TranscriptRecord.objects.filter(trial=trial).first()
    if record is not None:
        same = structs.replace(record.unpack(), usage=read.usage, usage_by_model=read.usage_by_model)
        record.data = TranscriptRecord.pack(same)
        record.save(update_fields=["data"])
