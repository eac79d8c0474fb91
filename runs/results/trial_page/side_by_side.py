"""Compare two trials: results, aligned commands, judge and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KeyTextTransform

from evalhub.lib.numbers import format_count
from evalhub.teams.models import Project
from evaluators.tool_use.command_alignment import align, command_key
from runs.compare.differences import FingerprintDifference, fingerprint_differences
from runs.compare.shown_changes import ComparedMeasure
from runs.models import CommandRecord, JudgingRecord, Trial
from runs.results.counting import compared_by
from runs.results.outcome_history import OutcomeHistory
from runs.results.trial_page.steps import TimelineStep
from runs.results.trial_page.timeline import AT_ONCE, build_timeline, call_address
from runs.results.trial_page.trial_page import TrialPage, trials_by_key
from runs.results.trial_page.typical_values import TypicalValues
from scenarios.differences import TextDifference, lines_of, text_difference
from scenarios.models import ScenarioVersion


class DoneCommand(NamedTuple):
    """A call in its trial's column."""

    line: str
    exit_code: int | None
    failed: bool
    address: str
    """Link to the call, relative to its trial's page."""
    key: str = ""
    """Subcommand and flags; empty for a call of another program."""
    estimated: bool = False
    """Whether its end is estimated from text."""


class CommandPair(NamedTuple):
    """Two aligned calls; a side is None if its trial has no counterpart."""

    base: DoneCommand | None
    new: DoneCommand | None

    @property
    def is_apart(self) -> bool:
        """Return whether the lines differ."""
        return self.base is None or self.new is None or self.base.line != self.new.line

    @property
    def parts_ways(self) -> bool:
        """Return whether the tool's commands differ in subcommand or flags."""
        keys = [side.key if side else "" for side in self]
        return keys[0] != keys[1]


def done_commands(steps: Sequence[TimelineStep]) -> Iterator[DoneCommand]:
    """Yield the calls of a trial: each command of the tool, and the other calls."""
    for at, step in enumerate(steps):
        place = call_address(at, step.number, None)
        for command in step.own:
            key = command_key(command.line, command.subcommand)
            yield DoneCommand(
                command.line, command.exit_code, command.failed, place, key, command.end == "estimated"
            )
        if step.number and not step.own:
            yield DoneCommand(step.line, step.exit_code, step.failed, place, estimated=step.estimated)


def align_trials(before: Sequence[DoneCommand], after: Sequence[DoneCommand]) -> list[CommandPair]:
    """Return both trials' calls in order, the tool's commands aligned by subcommand and flags.

    Other calls are shown side by side between them; without any command of the tool, they are aligned themselves.
    """
    if not any(each.key for each in (*before, *after)):
        before, after = (
            [each._replace(key=command_key(each.line)) for each in side] for side in (before, after)
        )
    return list(_align(before, after))


def _align(before: Sequence[DoneCommand], after: Sequence[DoneCommand]) -> Iterator[CommandPair]:
    ours = [[at for at, each in enumerate(side) if each.key] for side in (before, after)]
    keys = [[side[at].key for at in own] for side, own in zip((before, after), ours, strict=True)]
    old = new = 0
    for one, other in align(*keys):
        # Other calls come before the next command of the tool on either side, also where one has no counterpart.
        old_end = next((at for at in ours[0] if at >= old), len(before))
        new_end = next((at for at in ours[1] if at >= new), len(after))
        yield from _beside(before[old:old_end], after[new:new_end])
        yield CommandPair(None if one is None else before[old_end], None if other is None else after[new_end])
        old, new = old_end + (one is not None), new_end + (other is not None)
    yield from _beside(before[old:], after[new:])


def _beside(before: Sequence[DoneCommand], after: Sequence[DoneCommand]) -> Iterator[CommandPair]:
    return (CommandPair(*pair) for pair in zip_longest(before, after))


Score = dict[str, Any]


class GatePair(NamedTuple):
    """A gate in both trials; a side is None if the trial lacks it."""

    gate: Score
    """The new trial's gate, else the base's."""
    base: Score | None
    new: Score | None


@dataclass(frozen=True)
class TwoTrials:
    """Content of the page that compares two trials."""

    base: TrialPage
    new: TrialPage
    commands: tuple[list[DoneCommand], list[DoneCommand]]
    reasoning: tuple[str, str] = ("", "")
    """What the judge wrote about each trial."""

    @property
    def sides(self) -> tuple[TrialPage, TrialPage]:
        return self.base, self.new

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Return which of task, gates, judge and rubric differ; the results are comparable only if none does."""
        if not self.is_one_scenario:
            return ("scenario",)
        return _find_changes(self.base.trial.scenario_version, self.new.trial.scenario_version)

    @property
    def is_one_scenario(self) -> bool:
        return self.base.trial.scenario_id == self.new.trial.scenario_id

    @cached_property
    def differences(self) -> list[FingerprintDifference]:
        """Return the differences between the runs' fingerprints."""
        return fingerprint_differences(self.base.trial.run, self.new.trial.run)

    @cached_property
    def measures(self) -> list[ComparedMeasure]:
        """Return the measures of either trial."""
        before, after = self.base.trial, self.new.trial
        pairs = [
            ComparedMeasure("Time", "s", before.seconds, after.seconds),
            ComparedMeasure("Cost", "USD", before.cost_usd, after.cost_usd),
            ComparedMeasure("Input tokens", "tokens", before.tokens_in, after.tokens_in),
            ComparedMeasure("Output tokens", "tokens", before.tokens_out, after.tokens_out),
            ComparedMeasure("Composite", "", before.composite, after.composite),
            *_pair_measures(self.base, self.new),
            ComparedMeasure("Judge score", "", _judge_score(self.base), _judge_score(self.new)),
        ]
        return [pair for pair in pairs if pair.base is not None or pair.new is not None]

    @property
    def compared_by(self) -> str:
        """Return by which exit codes tool use is compared, as a sentence; empty in runs of older releases."""
        return compared_by(self.base.trial.run.counting, self.new.trial.run.counting)

    @cached_property
    def gates(self) -> list[GatePair]:
        """Return the gates of both trials, paired by what they check."""
        before, after = _by_place(self.base.gates), _by_place(self.new.gates)
        places = dict.fromkeys([*after, *before])
        return [
            GatePair(after.get(place) or before[place], before.get(place), after.get(place))
            for place in places
        ]

    @cached_property
    def criteria(self) -> list[ComparedMeasure]:
        """Return the judge's criteria in either trial."""
        before, after = ({each.name: each.score for each in page.criteria} for page in self.sides)
        return [
            ComparedMeasure(name, "", before.get(name), after.get(name))
            for name in dict.fromkeys([*after, *before])
        ]

    @property
    def is_judged(self) -> bool:
        return any(page.judge for page in self.sides)

    @cached_property
    def pairs(self) -> list[CommandPair]:
        """Return the calls of both trials aligned, as many as fit on a page."""
        before, after = self.commands
        return align_trials(before[:AT_ONCE], after[:AT_ONCE])

    @property
    def more(self) -> int:
        """Return the number of calls that are not shown."""
        return max(0, *(len(side) - AT_ONCE for side in self.commands))

    @cached_property
    def first_difference(self) -> int:
        """Return the number of the first pair of the tool's commands that differ, else of any that do; 0 if none."""
        apart = [number for number, pair in enumerate(self.pairs, 1) if pair.parts_ways]
        return next(iter(apart), 0) or next(
            (number for number, pair in enumerate(self.pairs, 1) if pair.is_apart), 0
        )

    @property
    def command_summary(self) -> str:
        """Return how many commands are identical, in words."""
        shown = format_count(len(self.pairs), "command")
        if not self.pairs and any(page.interaction.get("source") == "none" for page in self.sides):
            return "commands not available"
        if not self.pairs:
            return "no commands in either trial"
        if self.first_difference:
            return f"first difference at command {self.first_difference}"
        return f"first {shown} identical" if self.more else f"identical ({shown})"

    @cached_property
    def answer_difference(self) -> TextDifference | None:
        """Return the difference of the answers; None if they are too long, or one is missing."""
        before, after = (page.trial.answer for page in self.sides)
        return text_difference(lines_of(before), lines_of(after)) if before and after else None


def two_trials(project: Project, base: int, new: int) -> TwoTrials | None:
    """Return two trials side by side; None unless both exist and differ. Two queries."""
    trials = trials_by_key(project, (base, new), reasoning=_REASONING)
    before, after = trials.get(base), trials.get(new)
    if before is None or after is None or before == after:
        return None
    commands: dict[int, list[CommandRecord]] = {before.pk: [], after.pk: []}
    for command in CommandRecord.objects.filter(trial__in=commands).order_by("n"):
        commands[command.trial_id].append(command)
    pages = [_page(trial, commands[trial.pk]) for trial in (before, after)]
    done = [list(done_commands(page.timeline.every)) for page in pages]
    # The row type lacks the annotation.
    reasons = [str(getattr(trial, "reasoning", None) or "") for trial in (before, after)]
    return TwoTrials(pages[0], pages[1], (done[0], done[1]), (reasons[0], reasons[1]))


_REASONING = Subquery(
    JudgingRecord.objects.filter(trial=OuterRef("pk"), counts=True, name="judge")
    .order_by("-pk")
    .values(text=KeyTextTransform("reasoning", "content"))[:1]
)
"""What the judge whose score counts wrote about a trial."""


def _page(trial: Trial, commands: list[CommandRecord]) -> TrialPage:
    """Return a trial's page without judgings, artifacts and neighbouring trials."""
    record = getattr(trial, "transcript", None)
    transcript = record.unpack() if record else None
    return TrialPage(
        trial=trial,
        commands=commands,
        judgings=[],
        artifacts=[],
        siblings=[],
        timeline=build_timeline(transcript, commands),
        transcript=transcript,
        strip=OutcomeHistory(),
        typical=TypicalValues(),
    )


def _pair_measures(base: TrialPage, new: TrialPage) -> list[ComparedMeasure]:
    before, after = ({each.label: each for each in page.metrics} for page in (base, new))
    labels = dict.fromkeys([*after, *before])
    both = [(after.get(label) or before[label], before.get(label), after.get(label)) for label in labels]
    return [
        ComparedMeasure(either.label, either.unit, old.value if old else None, new.value if new else None)
        for either, old, new in both
    ]


def _judge_score(page: TrialPage) -> float | None:
    value: float | None = page.judge.get("value") if page.judge else None
    return value


def _by_place(gates: Sequence[Score]) -> dict[tuple[str, ...], Score]:
    """Return gates by what they check, equal ones numbered."""
    seen: Counter[tuple[str, ...]] = Counter()
    by_place = {}
    for gate in gates:
        detail = gate.get("detail") or {}
        place = (
            gate["layer"],
            gate["name"],
            *(str(detail.get(name, "")) for name in ("name", "command", "path")),
        )
        seen[place] += 1
        by_place[*place, str(seen[place])] = gate
    return by_place


def _find_changes(before: ScenarioVersion, after: ScenarioVersion) -> tuple[str, ...]:
    if before.pk == after.pk:
        return ()
    parts = {
        "task": before.task_hash == after.task_hash,
        "gates": before.gates_hash == after.gates_hash,
        "judge": before.judge_hash == after.judge_hash,
        # A project stores each rubric's content once.
        "rubric": before.rubric_id == after.rubric_id,
    }
    return tuple(word for word, same in parts.items() if not same)
