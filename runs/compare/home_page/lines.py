"""The lines of a project's home: each suite on a target with a model, with its newest answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.conf import settings
from django.utils.safestring import SafeString

from evalhub.lib.numbers import counted, percent
from evalhub.teams.models import Project
from evalhub.web.line_chart import LineOfRuns, draw_line, draw_small_line
from evaluators.statistics.line_band import expected_band
from runs.compare.differences import FingerprintDifference, fingerprint_differences
from runs.models import Alert, Run
from runs.models.comparison import OPEN_ALERTS
from runs.models.run import MAINLINE, NOT_CONFIRMING, OPEN
from runs.results.digests import Digest, digests_of
from runs.results.rates import Rate
from runs.results.run_answers import LOOKS, RunAnswer
from runs.results.run_list import RunRow, rows
from runs.results.run_rows import listed_runs

RECENT = 400
"""Newest runs of which lines are made."""
RUNS_SHOWN = 12
"""Runs of a line in its picture."""
CARDS_SHOWN = 2
PICTURES_SHOWN = 12
"""Lines with a picture, cards included; the others are in the table."""
BROKEN_SHOWN = 3
ORDER = (
    RunAnswer.REGRESSED,
    RunAnswer.FAILED,
    RunAnswer.BELOW_ITS_BAR,
    RunAnswer.ERRORS,
    RunAnswer.ERROR,
    RunAnswer.UNDECIDED,
    RunAnswer.NOT_COMPARABLE,
    RunAnswer.NEW_LINE,
    RunAnswer.CANCELLED,
    RunAnswer.IMPROVED,
    RunAnswer.SMALL_CHANGE,
    RunAnswer.AS_BEFORE,
)
"""Answers in the order in which lines are shown."""
WORDS = (
    *(
        "No",
        "One",
        "Two",
        "Three",
        "Four",
        "Five",
        "Six",
        "Seven",
        "Eight",
        "Nine",
        "Ten",
        "Eleven",
        "Twelve",
    ),
)


@dataclass(frozen=True)
class Line:
    """A suite on a target with a model over its last runs."""

    latest: RunRow
    rates: tuple[Rate, ...]
    """Of the last runs, the oldest first."""

    @property
    def answer(self) -> RunAnswer:
        return self.latest.answer

    @cached_property
    def drawn(self) -> LineOfRuns | None:
        """The line as it is drawn; None where no trial of the newest run passed or failed."""
        known = [rate for rate in self.rates if rate.n]
        if not known or not self.latest.rate.n:
            return None
        *earlier, newest = known
        return LineOfRuns(
            rates=[rate.share for rate in known],
            interval=(newest.low, newest.high),
            band=expected_band([(rate.passed, rate.n) for rate in earlier], newest.n),
            look=LOOKS.get(self.answer, "is-little"),
        )

    @property
    def label(self) -> str:
        """Return what its picture shows."""
        return f"Pass rate of the last {counted(len(self.rates), 'run')}, the newest {percent(self.latest.rate.share)}"

    def picture(self, start: float) -> SafeString:
        """Return a small picture whose axis begins at `start`."""
        return draw_small_line(self.drawn, label=self.label, start=start) if self.drawn else SafeString("")


@dataclass(frozen=True)
class Broken:
    """A scenario that passes less often than on the old side."""

    key: str
    before: tuple[str, ...]
    now: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class WorseCard:
    """A line that regressed, with what broke and what changed."""

    line: Line
    picture: SafeString
    broken: tuple[Broken, ...]
    changes: tuple[FingerprintDifference, ...]
    since: datetime | None
    """When the first run of the regression ran."""
    alert: Alert | None
    """Open, if there is one."""


@dataclass(frozen=True)
class HomeLines:
    """All lines of a project, the gravest first."""

    lines: tuple[Line, ...]
    cards: tuple[WorseCard, ...]
    idle: int
    """Lines that did not run for so long that they aren't shown."""

    @property
    def pictured(self) -> tuple[Line, ...]:
        """The lines with a small picture."""
        with_card = {card.line.latest.run.id for card in self.cards}
        left = [line for line in self.lines if line.latest.run.id not in with_card]
        return tuple(left[: PICTURES_SHOWN - len(self.cards)])

    @property
    def start(self) -> float:
        """Where the axes of all small pictures begin."""
        return min([0.5, *(line.drawn.start for line in self.pictured if line.drawn)])

    @property
    def title(self) -> str:
        """Say in a sentence whether anything got worse."""
        worse = self._number(RunAnswer.REGRESSED)
        of = _word(len(self.lines)).lower()
        if worse:
            return f"{_word(worse)} of {of} {'line is' if worse == len(self.lines) == 1 else 'lines is' if worse == 1 else 'lines are'} worse"
        if self._number(RunAnswer.AS_BEFORE) == len(self.lines):
            return (
                f"All {counted(len(self.lines), 'line')} are as before"
                if len(self.lines) > 1
                else "The line is as before"
            )
        return "No line is known to be worse"

    @property
    def others(self) -> str:
        """Say how the other lines are, such as `Eight as before, one undecided.`"""
        counts = [
            (self._number(*answers), word)
            for word, answers in (
                ("failed", (RunAnswer.FAILED, RunAnswer.BELOW_ITS_BAR)),
                ("with errors", (RunAnswer.ERRORS, RunAnswer.ERROR)),
                ("undecided", (RunAnswer.UNDECIDED, RunAnswer.NOT_COMPARABLE, RunAnswer.CANCELLED)),
                ("new", (RunAnswer.NEW_LINE,)),
                ("improved", (RunAnswer.IMPROVED,)),
                ("with a small change", (RunAnswer.SMALL_CHANGE,)),
                ("as before", (RunAnswer.AS_BEFORE,)),
            )
        ]
        said = [f"{_word(n).lower()} {word}" for n, word in counts if n]
        text = ", ".join(said)
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def _number(self, *answers: RunAnswer) -> int:
        return sum(line.answer in answers for line in self.lines)


def _word(number: int) -> str:
    return WORDS[number] if number < len(WORDS) else f"{number:,}"


def home_lines(project: Project, *, now: datetime) -> HomeLines:
    """Return a project's lines on its default branch, of the newest runs. Four queries, three more where some regressed."""
    recent = Run.objects.filter(NOT_CONFIRMING, project=project, branch__in=MAINLINE, is_experiment=False)
    columns = ("pk", "suite_id", "target_id", "model", "passed", "failed", "finished")
    rates: dict[tuple[int, int, str], list[Rate]] = {}
    newest: dict[tuple[int, int, str], tuple[int, datetime | None]] = {}
    for pk, suite, target, model, passed, failed, finished in (
        recent.exclude(state__in=OPEN).order_by("-pk").values_list(*columns)[:RECENT]
    ):
        newest.setdefault((suite, target, model), (pk, finished))
        rates.setdefault((suite, target, model), []).append(Rate(passed, passed + failed))
    oldest = now - timedelta(days=settings.LINE_DAYS)
    shown = {key: pk for key, (pk, finished) in newest.items() if finished is None or finished >= oldest}
    latest = rows(listed_runs(list(shown.values())))
    lines = [Line(row, tuple(rates[key][:RUNS_SHOWN][::-1])) for key, row in zip(shown, latest, strict=True)]
    lines.sort(key=lambda line: (ORDER.index(line.answer), -line.latest.run.id))
    return HomeLines(tuple(lines), _cards(lines), len(newest) - len(shown))


def _cards(lines: Sequence[Line]) -> tuple[WorseCard, ...]:
    worse = [line for line in lines if line.answer is RunAnswer.REGRESSED and line.drawn][:CARDS_SHOWN]
    if not worse:
        return ()
    keys = [line.latest.run.id for line in worse]
    runs = Run.objects.select_related("guidance", "baseline__guidance").in_bulk(keys)
    alerts = {alert.run_id: alert for alert in Alert.objects.filter(run__in=keys, state__in=OPEN_ALERTS)}
    since = {key: runs[key].old_side.get("since") for key in keys}
    digests = digests_of([*keys, *(run.baseline_id for run in runs.values() if run.baseline_id)])
    first = Run.objects.in_bulk([key for key in since.values() if key])
    return tuple(
        _card(line, runs[key], digests, first.get(since[key] or 0), alerts.get(key))
        for line, key in zip(worse, keys, strict=True)
    )


def _card(
    line: Line, run: Run, digests: Mapping[int, Digest], first: Run | None, alert: Alert | None
) -> WorseCard:
    own, old = digests.get(run.pk), digests.get(run.baseline_id or 0)
    began = (first or run).finished
    drawn = line.drawn
    return WorseCard(
        line,
        (
            draw_line(drawn, label=line.label, show=percent)
            + draw_line(drawn, label=line.label, show=percent, is_narrow=True)
        )
        if drawn
        else SafeString(""),
        _broken(old, own) if own and old else (),
        tuple(fingerprint_differences(run.baseline, run)) if run.baseline else (),
        began,
        alert,
    )


def _broken(old: Digest, own: Digest) -> tuple[Broken, ...]:
    """Return the scenarios that lost the most of their passes, at most three."""
    before, after = old.outcomes, own.outcomes
    lost = {key: _share(before[key]) - _share(after[key]) for key in before.keys() & after.keys()}
    worst = sorted((key for key in lost if lost[key] > 0), key=lambda key: (-lost[key], key))
    reasons = {trial.key: trial.lost[0] for trial in reversed(own.trials) if trial.lost}
    return tuple(
        Broken(key, tuple(before[key]), tuple(after[key]), reasons.get(key, ""))
        for key in worst[:BROKEN_SHOWN]
    )


def _share(outcomes: Sequence[str]) -> float:
    counted_outcomes = [each for each in outcomes if each in ("pass", "fail")]
    return counted_outcomes.count("pass") / len(counted_outcomes) if counted_outcomes else 0.0
