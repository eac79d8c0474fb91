"""Say what a skill adds on one target and model: against no skill, and against its previous version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from evaluators.statistics.verdict_sentences import describe_interval, describe_size
from runs.compare.guidance.guidance_comparison import RunsBySide, compare_pooled
from runs.compare.measure_changes import RunComparison
from runs.models import Run, Trial
from runs.models.run import MOSTLY_MEASURED, UNCHECKED, Arm
from runs.models.trial import TrialState
from runs.results.measures import label_named
from scenarios.models import Guidance

_WITH_EVENTS = ("recorded", "events", "stream", "trace")
SHARE = "judge/judge"
"""The judge's score of statements: the share of them that hold."""
SHARE_LABEL = "Share of statements"
ADDS = (
    SHARE,
    "interaction/first_try_success_rate",
    "trial/cost_usd",
    "trial/seconds",
    "trial/tokens_in",
    "trial/tokens_out",
)
"""What a skill changes beside the pass rate, in the order of the sentence."""


@dataclass(frozen=True)
class PreviousArm:
    """A skill's previous version beside it, tested once after the last look."""

    guidance: Guidance
    runs: tuple[Run, ...]
    """Runs with the previous version, newest first."""
    compared: RunComparison
    """The skill's runs of the same launches, compared with the previous version's."""

    @property
    def sentence(self) -> str:
        """What changed since the previous version."""
        return previous_sentence(self.guidance, self.compared)


_ARMS = {
    "with_skill": "with the skill",
    "new_skill": "with the skill",
    "without_skill": "without it",
    "baseline": "without it",
    "old_skill": "with its previous version",
}
"""What configurations of benchmark.json are called, in the order of the sentence."""


@dataclass(frozen=True)
class BenchmarkMean:
    """The mean share of statements of one configuration, from 0 to 1."""

    configuration: str
    """Its name in benchmark.json."""
    said: float
    here: float | None
    """None where it was not measured."""


@dataclass(frozen=True)
class LiftAnswer:
    """What a skill adds on one target and model."""

    chosen: RunsBySide
    compared: RunComparison
    previous: PreviousArm | None
    """None where no previous version ran beside it."""
    was_opened: bool = True
    """Whether a trial opened the skill, by the agents' events."""

    @property
    def sentence(self) -> str:
        """What the skill adds; first that no trial opened it."""
        opened = "" if self.was_opened else "No trial opened the skill. "
        return f"{opened}{lift_sentence(self.chosen, self.compared)}"

    @property
    def benchmark(self) -> list[BenchmarkMean]:
        """What the skill's benchmark.json said when the newest run started, beside the same here; empty without one."""
        said = self.chosen.after[0].options.get("benchmark") or {}
        share, older = (
            compared_measures(compared).get(SHARE) if compared else None
            for compared in (self.compared, self.previous and self.previous.compared)
        )
        here = {
            "with the skill": share.after if share else None,
            "without it": share.before if share else None,
            "with its previous version": older.before if older else None,
        }
        return [BenchmarkMean(name, said[name], here[arm]) for name, arm in _ARMS.items() if name in said]

    @property
    def benchmark_sentence(self) -> str:
        """The same in a sentence; empty without a benchmark.json."""
        if not self.benchmark:
            return ""
        means = (
            f"{_percent(mean.said)} {_ARMS[mean.configuration]}"
            f" (here {'not measured' if mean.here is None else _percent(mean.here)})"
            for mean in self.benchmark
        )
        return f"Mean share of statements by skill-creator's benchmark.json: {', '.join(means)}."

    @property
    def sentences(self) -> list[str]:
        """The answer, each sentence with what it is about."""
        previous = self.previous.sentence if self.previous else ""
        return [*filter(None, (self.sentence, previous, self.benchmark_sentence))]


def read_lift_answer(chosen: RunsBySide, compared: RunComparison) -> LiftAnswer:
    """Return what the skill adds, of compared runs without it and with it. Two queries, six more with a third arm."""
    return LiftAnswer(chosen, compared, _read_previous(chosen), was_opened=_was_opened(chosen.after))


def _was_opened(runs: Sequence[Run]) -> bool:
    """Return whether a trial opened the guidance; True where no agent's events would show it."""
    rows = Trial.objects.filter(run__in=runs, state=TrialState.FINISHED, outcome__in=("pass", "fail"))
    columns = ("detail__exposure__opened", "detail__exposure__in_context", "detail__interaction__source")
    known = [
        bool(opened or in_context)
        for opened, in_context, source in rows.values_list(*columns)
        if opened is not None and source in _WITH_EVENTS
    ]
    return any(known) or not known


def _read_previous(chosen: RunsBySide) -> PreviousArm | None:
    """Return the newest previous version that ran beside the skill."""
    skills = {run.reference_id: run for run in chosen.after}
    rows = Run.objects.filter(
        MOSTLY_MEASURED | Q(open__gt=0),
        launch__in={run.launch_id for run in chosen.after},
        arm=Arm.PREVIOUS,
    )
    beside = [
        run
        for run in rows.select_related("project", "guidance").order_by("-pk")
        if run.reference_id in skills
    ]
    newest = beside[0].guidance if beside else None
    if newest is None:
        return None
    runs = tuple(run for run in beside if run.guidance_id == newest.pk)
    after = tuple(skills[run.reference_id] for run in runs)
    return PreviousArm(
        newest, runs, compare_pooled(RunsBySide(chosen.setting, runs, after, interleaved=True))
    )


def compared_measures(compared: RunComparison) -> dict[str, MeasureChange]:
    """Return a comparison's measures by name, such as `trial/pass`."""
    return {each.measure: each for each in (*compared.headline, *compared.others)}


def lift_sentence(chosen: RunsBySide, compared: RunComparison) -> str:
    """Return what a skill adds, each with its interval, and on which cases."""
    change, where = compared.pass_rate, chosen.setting.label
    if compared.verdict_reason == UNCHECKED:
        others = [_change_words(each) for each in _named(compared, ADDS) if each.effect is not None]
        also = f" Compared all the same: {'; '.join(others)}." if others else ""
        return f"On {where}, nothing says what the skill adds. {compared.no_verdict}{also}"
    if change is None:
        return lift_unknown(where)
    return f"{first_words(change, where)}{_other_words(compared, 'It')}."


def _named(compared: RunComparison, names: Iterable[str]) -> list[MeasureChange]:
    """Return a comparison's measures of these names, in their order."""
    known = compared_measures(compared)
    return [known[name] for name in names if name in known]


def previous_sentence(guidance: Guidance, compared: RunComparison) -> str:
    """Return what changed since a skill's previous version, each with its interval, and on which cases."""
    change = compared.pass_rate
    if change is None:
        return f"No case has results with the previous version, {guidance}."
    ends = f" (95 % interval {describe_interval(change)})" if describe_interval(change) else ""
    return (
        f"Against the previous version, {guidance}: {change.verdict.label.lower()}, pass rate"
        f" {describe_size(change, change.effect)}{ends}, {_percent(change.before)} with that version,"
        f" {_percent(change.after)} with this one{_other_words(compared, 'The change')}."
    )


def _other_words(compared: RunComparison, subject: str) -> str:
    """Return what else changed, and on which cases the subject helps and hurts."""
    others = [_change_words(each) for each in _named(compared, ADDS) if each.effect is not None]
    helped, hurt = (
        [key for key, each in compared.scenarios.items() if each.verdict is verdict]
        for verdict in (ChangeVerdict.IMPROVED, ChangeVerdict.REGRESSED)
    )
    cases = [f"{word} {', '.join(keys)}" for word, keys in (("helps on", helped), ("hurts on", hurt)) if keys]
    where_it_shows = f". {subject} {' and '.join(cases)}" if cases else ""
    return f"{''.join(f'; {each}' for each in others)}{where_it_shows}"


def lift_unknown(where: str) -> str:
    """Return that nothing says what a skill adds."""
    return f"On {where}, no case has results with and without the skill."


def first_words(change: MeasureChange, where: str) -> str:
    """Return what a skill adds to the pass rate, without a full stop."""
    rates = f"pass rate {_percent(change.before)} without it, {_percent(change.after)} with it"
    amount = describe_size(change, change.effect, signed=False)
    ends = f" (95 % interval {describe_interval(change)})" if describe_interval(change) else ""
    if change.verdict is ChangeVerdict.IMPROVED:
        return f"On {where}, the skill adds {amount} of pass rate{ends}: {rates}"
    if change.verdict is ChangeVerdict.REGRESSED:
        return f"On {where}, the skill takes {amount} of pass rate{ends}: {rates}"
    return (
        f"On {where}, whether the skill adds anything is open ({change.verdict.label.lower()}): {rates}{ends}"
    )


def _percent(share: float | None) -> str:
    return f"{(share or 0.0) * 100:.0f} %"


def _change_words(change: MeasureChange) -> str:
    name = change.measure
    label = (SHARE_LABEL if name == SHARE else label_named(*name.split("/", 1))).lower()
    ends = f" ({describe_interval(change)})" if describe_interval(change) else ""
    return f"{label} {describe_size(change, change.effect)}{ends}"


def previous_json(previous: PreviousArm) -> dict[str, Any]:
    """Return the comparison with a previous version for REST and the command line."""
    change = previous.compared.pass_rate
    return {
        "guidance": previous.guidance.pk,
        "name": str(previous.guidance),
        "runs": [run.pk for run in previous.runs],
        "verdict": change.verdict.value if change else None,
        "sentence": previous.sentence,
    }


def benchmark_json(answer: LiftAnswer) -> dict[str, Any] | None:
    """Return what benchmark.json says beside the same here, for REST and the command line; None without one."""
    if not answer.benchmark:
        return None
    return {
        "sentence": answer.benchmark_sentence,
        "means": list(map(vars, answer.benchmark)),
    }
