"""Total the three layers of a run's trials.

Define units and directions of known measures; other names are accepted as they are.

Explain why a trial did not pass, or has no outcome.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db.models.fields.json import KT
from msgspec import Struct

from evalhub.lib.limits import LONGEST_ERROR, LONGEST_NAME
from evaluators.grading.assertions import VERDICT
from evaluators.tool_use.interaction import Interaction
from runs.models import Measure, Trial
from runs.models.measure import Better
from scenarios.models import ScenarioVersion

KNOWN: dict[tuple[str, str], tuple[str, Better]] = {
    ("trial", "pass"): ("rate", Better.HIGHER),
    ("trial", "false_done"): ("rate", Better.LOWER),
    ("trial", "composite"): ("score", Better.HIGHER),
    ("trial", "seconds"): ("s", Better.LOWER),
    ("trial", "cost_usd"): ("USD", Better.LOWER),
    ("trial", "tokens_in"): ("tokens", Better.LOWER),
    ("trial", "tokens_out"): ("tokens", Better.LOWER),
    ("interaction", "total_commands"): ("commands", Better.LOWER),
    ("interaction", "unique_commands"): ("commands", Better.NONE),
    ("interaction", "error_count"): ("commands", Better.LOWER),
    ("interaction", "error_rate"): ("rate", Better.LOWER),
    ("interaction", "retry_count"): ("commands", Better.LOWER),
    ("interaction", "retry_rate"): ("rate", Better.LOWER),
    ("interaction", "help_seeking"): ("calls", Better.LOWER),
    ("interaction", "first_try_success_rate"): ("rate", Better.HIGHER),
    ("interaction", "iteration_ratio"): ("ratio", Better.HIGHER),
    ("interaction", "completed"): ("rate", Better.HIGHER),
    ("interaction", "retries_after_failure"): ("commands", Better.LOWER),
    ("interaction", "exact_repeats"): ("commands", Better.LOWER),
    ("interaction", "wasted_tokens"): ("tokens", Better.LOWER),
    ("interaction", "tokens_in_failed_commands"): ("tokens", Better.LOWER),
    ("interaction", "tokens_in_repeated_help"): ("tokens", Better.LOWER),
    ("interaction", "tokens_after_done"): ("tokens", Better.LOWER),
    ("interaction", "unknown_exit"): ("commands", Better.NONE),
    ("interaction", "known"): ("commands", Better.NONE),
    ("interaction", "estimated"): ("commands", Better.NONE),
    ("interaction", "not_run"): ("calls", Better.NONE),
    ("interaction", "indirect"): ("calls", Better.NONE),
    ("interaction", "mentioned"): ("commands", Better.NONE),
    ("interaction", "failed_unknown_tool"): ("commands", Better.LOWER),
    ("interaction", "failed_arguments"): ("commands", Better.LOWER),
    ("interaction", "failed_is_error"): ("commands", Better.LOWER),
    ("interaction", "failed_protocol"): ("commands", Better.LOWER),
}
_BY_LAYER = {
    "gates": ("rate", Better.HIGHER),
    "assertions": ("rate", Better.HIGHER),
    "judge": ("score", Better.HIGHER),
    "evaluators": ("score", Better.HIGHER),
}


def unit_of(layer: str, name: str) -> tuple[str, Better]:
    """Return a measure's unit and direction; empty for unknown measures."""
    return KNOWN.get((layer, name)) or _BY_LAYER.get(layer) or ("", Better.NONE)


def measure_ids(names: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the keys of measures' rows by layer and name. New measures are created. One query, or three."""
    named = {(layer, name[:LONGEST_NAME]) for layer, name in names}
    ids = _stored_ids(named)
    if new := sorted(named - ids.keys()):
        Measure.objects.bulk_create([_measure(*key) for key in new], ignore_conflicts=True)
        ids |= _stored_ids(named)
    return {(layer, name): ids[layer, name[:LONGEST_NAME]] for layer, name in names}


def _stored_ids(names: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    rows = Measure.objects.filter(layer__in={layer for layer, _ in names})
    return {(layer, name): pk for pk, layer, name in rows.values_list("pk", "layer", "name")}


def _measure(layer: str, name: str) -> Measure:
    unit, better = unit_of(layer, name)
    return Measure(layer=layer, name=name, unit=unit, better=better)


INTERACTION = {
    "first_try_success_rate": "First-try success",
    "error_rate": "Error rate",
    "retry_rate": "Retry rate",
    "help_seeking": "Help opened",
    "total_commands": "Commands",
    "iteration_ratio": "Iteration ratio",
    "wasted_tokens": "Wasted tokens",
    "tokens_in_failed_commands": "Tokens in failed commands",
    "tokens_in_repeated_help": "Tokens in repeated help",
    "tokens_after_done": "Tokens after done",
    "completed": "Completed",
}
"""Labels of layer 1's measures in display order."""

CRITERION = "criterion."
"""Prefix of the judge's score of one criterion."""
_NAMES = {
    ("trial", "pass"): "Pass rate",
    ("trial", "false_done"): "False done",
    ("trial", "seconds"): "Time per trial",
    ("trial", "cost_usd"): "Cost per trial",
    ("trial", "tokens_in"): "Input tokens",
    ("trial", "tokens_out"): "Output tokens",
    ("judge", "judge"): "Judge score",
    ("interaction", "unknown_exit"): "Unknown ends",
    ("interaction", "known"): "Known ends",
    ("interaction", "estimated"): "Estimated ends",
    ("interaction", "not_run"): "Not run",
    ("interaction", "indirect"): "Indirect calls",
    ("interaction", "mentioned"): "Mentioned, not counted",
    ("interaction", "failed_unknown_tool"): "Failed: unknown tool",
    ("interaction", "failed_arguments"): "Failed: arguments",
    ("interaction", "failed_is_error"): "Failed: tool's error",
    ("interaction", "failed_protocol"): "Failed: protocol",
}


def label_of(measure: Measure) -> str:
    """Return a measure's label."""
    return label_named(measure.layer, measure.name)


def label_named(layer: str, name: str) -> str:
    """Return the label of a measure by its layer and name."""
    if label := _NAMES.get((layer, name)):
        return label
    if layer == "assertions":
        # Spelled as in the eval file.
        return name
    words = name.removeprefix(CRITERION).replace("_", " ")
    plain = f"{words[:1].upper()}{words[1:]}"
    return INTERACTION.get(name, plain) if layer == "interaction" else plain


def label_of_key(measure: str) -> str:
    """Return the label of a measure by layer and name in one, such as `trial/pass`."""
    layer, _, name = measure.partition("/")
    return label_named(layer, name)


CANCELLED = "Cancelled before it finished."


def is_verdict(layer: str, name: str) -> bool:
    """Return whether a score is a case's overall verdict, not a single assertion's."""
    return (layer, name) == ("assertions", VERDICT)


def failed_scores(scores: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the scores that failed a trial; for assertions the verdict alone."""
    failed = [score for score in scores if score.get("passed") is False]
    verdicts = [score for score in failed if is_verdict(score["layer"], score["name"])]
    return (
        [score for score in failed if score["layer"] != "assertions" or score in verdicts]
        if verdicts
        else failed
    )


def reasons_of(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a trial failed, each sentence once: two gates may miss the same file."""
    messages = (score.get("message") or f"{score['name']} failed." for score in failed_scores(scores))
    return list(dict.fromkeys(messages))


def trial_reasons(trial: Mapping[str, Any]) -> list[str]:
    """Return why a trial did not pass: its error, else the messages of failed scores."""
    if trial["outcome"] == "pass":
        return []
    return [trial["error"]] if trial["outcome"] == "error" else reasons_of(trial["scores"])


def fail_reason(scores: Sequence[Mapping[str, Any]]) -> str:
    """Return why a trial failed in one line; empty if no score failed (llm-tool-test evaluation, Outcome).

    Gates are counted and named; every other score gives its message.
    """
    failed = failed_scores(scores)
    gates = [score["name"] for score in failed if score["layer"] == "gates"]
    total = sum(score["layer"] == "gates" and score.get("passed") is not None for score in scores)
    counted = [f"{len(gates)} of {total} gates failed: {', '.join(dict.fromkeys(gates))}."] if gates else []
    return " ".join([*counted, *reasons_of([score for score in failed if score["layer"] != "gates"])])


def error_of_unmeasured(run: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the error that kept a trial from running, if its run measured nothing; else empty.

    A viewer shows skipped tests as green, which would hide that nothing was measured.
    """
    if trial["outcome"] or run["passed"] or run["failed"]:
        return ""
    return str(trial["error"] or run["error"])


def reason_without_outcome(trial: Mapping[str, Any]) -> str:
    """Return why a trial has no outcome."""
    return str(trial["error"]) or (CANCELLED if trial["state"] == "cancelled" else f"It is {trial['state']}.")


RECORDED = "recorded"
TEXT = "transcript"
"""Source of commands found in a text without events."""
DECIDING = ("gates", "assertions", "evaluators")
"""Layers of single verdicts."""
CHECKING = frozenset((*DECIDING, "judge"))


class ReadScoreDetail(Struct, frozen=True, gc=False):
    """What is read of a score's detail."""

    name: Any = None
    """The name that a scenario gives to its gate, if any."""
    vacuous: Any = None
    """Whether a case's assertions asserted nothing."""


class ReadScore(Struct, gc=False):
    """The fields read from a score; the rest of its JSON is skipped."""

    layer: str
    name: str
    value: float | None = None
    passed: bool | None = None
    message: str = ""
    weight: float = 1.0
    detail: ReadScoreDetail = ReadScoreDetail()


def is_vacuous(outcome: str, scores: Iterable[ReadScore]) -> bool:
    """Return whether a trial that evalhub ran passed without anything that checked it.

    Gates, assertions, evaluators and judges check; scripts inform. Imported results state their outcomes themselves.
    """
    ran = checked = False
    for score in scores:
        ran |= (score.layer, score.name) == ("interaction", "completed")
        has_result = score.passed is not None or score.value is not None
        checked |= score.layer in CHECKING and has_result and not score.detail.vacuous
    return outcome == "pass" and ran and not checked


class GateKind(Struct, frozen=True):
    """Totals of one kind of gate over a run's trials."""

    layer: str
    name: str
    passed: int
    total: int
    scenarios: int = 0
    """Number of scenarios with it; 0 in digests of older releases."""


class LostGate(Struct, frozen=True):
    """A gate that failed for the same reason in several trials."""

    name: str
    reason: str
    trials: tuple[int, ...]


class JudgeTotals(Struct, frozen=True):
    """The judge's thresholds, and how many trials reached them."""

    reached: int = 0
    decided: int = 0
    thresholds: tuple[float, ...] = ()
    """Pass thresholds, ascending; scenarios may differ."""
    shares: dict[str, float] = {}
    """Relative weights of the criteria, 0 to 1, by name, without those that differ between trials."""

    @property
    def threshold(self) -> float | None:
        """Return the common threshold; None if they differ or none is known."""
        return self.thresholds[0] if len(self.thresholds) == 1 else None


class EndTotals(Struct, frozen=True):
    """How the ends of commands are known, and what isn't among them."""

    commands: int = 0
    known: int = 0
    estimated: int = 0
    """Known ends that are estimated from text."""
    not_run: int = 0
    """Calls that never ran."""
    indirect_by: dict[str, int] = {}
    """Recorded calls by other programs, by the program."""
    mentioned: int = 0
    """Shell commands that name the tool and have no command of it."""
    unread: int = 0
    """Shell calls that were not read in time."""
    printed_errors: int = 0
    """Commands with an unknown end that printed an error."""
    printed_in: int | None = None
    """The trial with the most of them."""
    others: int = 0
    """Trials whose commands don't count, because most of their scenario's have another source."""


class LayerTotals(Struct, frozen=True):
    """Totals of the layers over a run's trials, without errors."""

    trials: int = 0
    completed: int = 0
    """Trials whose agent exited successfully."""
    known: int = 0
    """Trials whose exit is known."""
    structured: int = 0
    """Trials with commands from structured events."""
    text: int = 0
    """Trials with commands from text."""
    lost: LostGate | None = None
    """The most frequent failure."""
    judge: JudgeTotals = JudgeTotals()
    recorded: int = 0
    """Trials with recorded commands."""
    ends: EndTotals = EndTotals()
    not_recorded: dict[str, int] = {}
    """Trials whose tool was not recorded, by the reason."""


class TotalledTrial(Struct, frozen=True):
    """A finished trial without error."""

    pk: int
    scores: Sequence[ReadScore]
    interaction: Interaction | None
    not_recorded: str = ""
    """Why its tool was not recorded; empty if it was."""
    counts: bool = True
    """Whether its commands count: their source is that of its scenario's trials."""

    @property
    def source(self) -> str:
        """Return the source of its commands, as in `Transcript.source`."""
        return self.interaction.source if self.interaction else "none"


def layer_totals(run: int, trials: Sequence[TotalledTrial]) -> LayerTotals:
    """Return the totals of a run's layers. One query if a judge decided any trial."""
    sources = Counter(trial.source for trial in trials)
    completed = [
        score.value
        for trial in trials
        for score in trial.scores
        if (score.name == "completed" and score.layer == "interaction" and score.value is not None)
    ]
    return LayerTotals(
        trials=len(trials),
        completed=sum(bool(value) for value in completed),
        known=len(completed),
        structured=len(trials) - sources["none"] - sources[TEXT] - sources[RECORDED],
        text=sources[TEXT],
        lost=most_lost(trials),
        judge=_judge(run, trials),
        recorded=sources[RECORDED],
        ends=_ends(trials),
        not_recorded=dict(Counter(trial.not_recorded for trial in trials if trial.not_recorded)),
    )


def _ends(trials: Sequence[TotalledTrial]) -> EndTotals:
    metrics = [trial.interaction for trial in trials if trial.interaction and trial.counts]
    printed = {
        trial.pk: len(trial.interaction.printed_errors)
        for trial in trials
        if trial.interaction and trial.counts
    }
    by: Counter[str] = Counter()
    for interaction in metrics:
        by.update(interaction.indirect_by)
    return EndTotals(
        commands=sum(interaction.total_commands for interaction in metrics),
        known=sum(interaction.total_commands - interaction.unknown_exit for interaction in metrics),
        estimated=sum(interaction.estimated for interaction in metrics),
        not_run=sum(interaction.not_run for interaction in metrics),
        indirect_by=dict(by.most_common()),
        mentioned=sum(interaction.mentioned for interaction in metrics),
        unread=sum(interaction.unread for interaction in metrics),
        printed_errors=sum(printed.values()),
        others=sum(not trial.counts for trial in trials),
        printed_in=max(printed, key=printed.__getitem__) if any(printed.values()) else None,
    )


def most_lost(trials: Iterable[TotalledTrial]) -> LostGate | None:
    failed_by_reason: defaultdict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for trial in trials:
        for score in trial.scores:
            if score.passed is False and is_single(score.layer, score.name):
                failed_by_reason[score.name, score.message[:LONGEST_ERROR]][trial.pk] = None
    if not failed_by_reason:
        return None
    (name, reason), failed = max(failed_by_reason.items(), key=lambda item: len(item[1]))
    return LostGate(name, reason, tuple(failed))


def _judge(run: int, trials: Iterable[TotalledTrial]) -> JudgeTotals:
    verdicts = []
    shares: defaultdict[str, set[float]] = defaultdict(set)
    for trial in trials:
        judged = [score for score in trial.scores if score.layer == "judge"]
        verdicts += [score.passed for score in judged if score.name == "judge" and score.passed is not None]
        criteria = [score for score in judged if score.name.startswith(CRITERION)]
        whole = sum(score.weight for score in criteria)
        for score in criteria if whole > 0 else ():
            shares[score.name].add(round(score.weight / whole, 4))
    if not verdicts:
        return JudgeTotals()
    same = {name: min(found) for name, found in shares.items() if len(found) == 1}
    return JudgeTotals(sum(verdicts), len(verdicts), _judge_thresholds(run), same)


def _judge_thresholds(run: int) -> tuple[float, ...]:
    # Without KT, Django keeps this frame and its callers' data until garbage is collected.
    threshold = KT("content__criteria__judge__pass_threshold")
    judged = ScenarioVersion.objects.filter(pk__in=Trial.objects.filter(run=run).values("scenario_version"))
    values = judged.order_by().values_list(threshold, flat=True).distinct()
    return tuple(sorted(float(value) for value in values if value is not None))


def is_single(layer: str, name: str) -> bool:
    """Return whether a score is one of several deciding verdicts."""
    return layer in DECIDING and not is_verdict(layer, name)


def gate_kinds(scores: Sequence[tuple[str, Sequence[ReadScore]]]) -> list[GateKind]:
    """Return totals by kind of gate, most failed first, from the scores of trials by their scenario's key."""
    passed: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    keys: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for key, trial_scores in scores:
        for score in trial_scores:
            if score.passed is not None:
                kind = score.layer, score.name
                total[kind] += 1
                passed[kind] += score.passed
                keys[kind].add(key)
    kinds = [GateKind(*key, passed=passed[key], total=total[key], scenarios=len(keys[key])) for key in total]
    return sorted(kinds, key=lambda kind: (kind.passed - kind.total, kind.name))


def gate_trials(scores: Sequence[Sequence[ReadScore]]) -> tuple[int, int]:
    """Return how many trials passed every gate, and how many had gates."""
    decided = passed = 0
    for trial_scores in scores:
        verdicts = [score.passed for score in trial_scores if score.passed is not None]
        decided += bool(verdicts)
        passed += bool(verdicts) and all(verdicts)
    return passed, decided
