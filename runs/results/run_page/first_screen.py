"""What a run's page shows first: its answer in a sentence, its line as a picture, what broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from evalhub.lib.numbers import counted, decimals, percent
from evalhub.web.line_chart import LineOfRuns, draw_line
from evaluators.statistics.line_band import FEWEST_RUNS, expected_band
from runs.compare.first_divergences import EndedTrial, first_divergences
from runs.compare.old_side import ShownOldSide
from runs.compare.shown_changes import ShownChange, ShownVerdict
from runs.models import Run
from runs.models.run import NOT_CONFIRMING, RunState
from runs.results.digests import Digest
from runs.results.rates import Rate
from runs.results.run_answers import LOOKS, RunAnswer
from runs.results.run_page.scenarios import ScenarioRow
from runs.results.run_page.verdicts import AgainstBaseline, ChangedScenario
from runs.results.run_trials import RunTrials

JUDGE = "judge/judge"
RUNS_SHOWN = 12
"""Runs of a line in the picture, the run itself the last."""
BROKEN_SHOWN = 3
WORDS = {
    RunAnswer.AS_BEFORE: "As before",
    RunAnswer.SMALL_CHANGE: "Small change",
    RunAnswer.UNDECIDED: "Undecided",
    RunAnswer.NOT_COMPARABLE: "Not comparable",
}
"""How the sentence of an answer begins, where nothing else is to be said first."""


@dataclass(frozen=True)
class BrokenScenario:
    """A scenario that passes less often than before."""

    key: str
    before: tuple[str, ...]
    now: tuple[str, ...]
    reason: str
    """Why its first failing trial failed; empty if unknown."""
    command: str = ""
    """The first command of a failing trial that differs from those of a passing one; empty if unknown."""
    instead_of: str = ""
    trial: int | None = None


@dataclass(frozen=True)
class FirstScreen:
    """The parts of a run's first screen."""

    look: str
    strong: str
    """The beginning of the sentence."""
    text: str
    """Its end."""
    aside: str
    """The figures of the change: its size and interval."""
    picture: SafeString
    caption: str
    broken: tuple[BrokenScenario, ...]
    more_broken: int
    errors: tuple[tuple[str, int], ...]
    """The most frequent errors, each with its number of trials."""


def first_screen(
    run: Run,
    answer: RunAnswer,
    *,
    verdict: ShownVerdict | None,
    against: AgainstBaseline | None,
    line: ShownOldSide | None,
    rule: str,
    errors: Iterable[str],
    rows: Sequence[ScenarioRow],
    read: RunTrials,
) -> FirstScreen:
    """Return the first screen of a closed run that ran.

    `rule` is the sentence of its suite's release rule, `errors` are its trials' errors.

    One query for the line where the verdict has none, one where scenarios broke.
    """
    strong, text, aside = _sentence(run, answer, verdict, against, rule)
    picture, caption = _picture(run, answer, line)
    broken = _lost(against, rows)
    shown = [(each.key, each.row, each.lost, each.trial) for each in broken[:BROKEN_SHOWN] if each.row]
    commands = _first_commands(run, [key for key, *_ in shown], read)
    return FirstScreen(
        look=LOOKS.get(answer, "is-little"),
        strong=strong,
        text=text,
        aside=aside,
        picture=picture,
        caption=caption,
        broken=tuple(_broken(*each, commands) for each in shown),
        more_broken=len(broken) - len(shown),
        errors=tuple(Counter(errors).most_common(BROKEN_SHOWN)),
    )


def _lost(against: AgainstBaseline | None, rows: Sequence[ScenarioRow]) -> list[ChangedScenario]:
    """Return the scenarios that lost passes; without a run before, those that failed, the worst first."""
    if against:
        return [each for each in against.changed if each.verdict == "regressed"]
    failed = [row for row in rows if "fail" in row.marks]
    return [ChangedScenario(row.key, "failed", row) for row in sorted(failed, key=lambda row: row.rate.share)]


def _sentence(
    run: Run,
    answer: RunAnswer,
    verdict: ShownVerdict | None,
    against: AgainstBaseline | None,
    rule: str,
) -> tuple[str, str, str]:
    ended = run.passed + run.failed + run.errors
    passed = f"{run.passed} of {counted(run.passed + run.failed, 'trial')} passed"
    if answer is RunAnswer.CANCELLED:
        return "Cancelled", f" after {ended} of {counted(run.trials, 'trial')}: {passed}.", ""
    if answer is RunAnswer.ERRORS:
        return run.no_verdict, "", ""
    if answer is RunAnswer.FAILED:
        return f"{counted(run.failed, 'trial')} failed", f": {passed}, and this suite asks for all.", ""
    if answer is RunAnswer.BELOW_ITS_BAR:
        return "Below its bar", f". {rule}", ""
    if verdict is None:
        return passed, ". Nothing comparable ran before, so this begins a line.", ""
    deciding = verdict.deciding
    aside = f"({', '.join(filter(None, (deciding.size, deciding.interval)))})"
    change = _change_words(deciding)
    if answer not in (RunAnswer.REGRESSED, RunAnswer.IMPROVED):
        return WORDS.get(answer, verdict.label), f": {change[0].lower()}{change[1:]}", aside
    of = counted(deciding.change.scenarios, "scenario")
    named = deciding.change.broke if answer is RunAnswer.REGRESSED else deciding.change.mended
    fewer = against.regressions if against and answer is RunAnswer.REGRESSED else 0
    if named:
        did = f"{len(named)} of {of} {'broke' if answer is RunAnswer.REGRESSED else 'improved'}"
    elif fewer:
        did = f"{fewer} of {of} {'passes' if fewer == 1 else 'pass'} less often"
    else:
        return change, "", aside
    return did, f", and the {change[0].lower()}{change[1:]}", aside


def _change_words(shown: ShownChange) -> str:
    """Return from what to what a headline measure changed."""
    before, after = shown.change.before, shown.change.after
    if before is None or after is None:
        return f"{shown.label} can't be compared"
    show = decimals if shown.change.rule.name == JUDGE else percent
    verb = "fell" if after < before else "rose"
    if show(before) == show(after):
        return f"{shown.label} stayed at {show(after)}"
    return f"{shown.label} {verb} from {show(before)} to {show(after)}"


def _picture(run: Run, answer: RunAnswer, line: ShownOldSide | None) -> tuple[SafeString, str]:
    """Return the chart of the line and what it shows, in a sentence."""
    stored = [each.run for each in line.runs] if line else []
    earlier = (stored or _recent(run))[: RUNS_SHOWN - 1][::-1]
    own = Rate(run.passed, run.passed + run.failed)
    if not own.n:
        return SafeString(""), ""
    counts = [(each.passed, each.passed + each.failed) for each in earlier]
    band = expected_band(counts, own.n)
    drawn = LineOfRuns(
        rates=[passed / n for passed, n in counts] + [own.share],
        interval=(own.low, own.high),
        band=band,
        look=LOOKS.get(answer, "is-little"),
        flags=_flags([*earlier, run]),
    )
    where = f"expected between {percent(band.low)} and {percent(band.high)}" if band else "no band yet"
    label = (
        f"Pass rate of {counted(len(earlier), 'earlier run')} and of this one, {percent(own.share)}, {where}"
    )
    wide, narrow = (
        draw_line(drawn, label=label, show=percent, is_narrow=is_narrow) for is_narrow in (False, True)
    )
    if band is None:
        missing = FEWEST_RUNS - len(earlier)
        return wide + narrow, f"{counted(missing, 'more run')} until this line has a band."
    of = "its line" if stored else "the same suite, target and model"
    return wide + narrow, (
        f"Grey: the last {counted(len(earlier), 'run')} of {of}, and where this one was expected."
    )


def _recent(run: Run) -> list[Run]:
    """Return the closed runs before this one on the same suite, target and model, newest first. One query."""
    same = Run.objects.filter(
        NOT_CONFIRMING,
        suite=run.suite_id,
        target=run.target_id,
        model=run.model,
        pk__lt=run.pk,
        state=RunState.FINISHED,
        is_experiment=False,
        passed__gt=0,
    )
    return list(
        same.only("passed", "failed", "tool_version", "guidance_id").order_by("-pk")[: RUNS_SHOWN - 1]
    )


def _flags(runs: Sequence[Run]) -> dict[int, str]:
    """Return the tool's versions where they change, by place; the newest change alone, so that names stay apart."""
    changed = [
        place
        for place in range(1, len(runs))
        if runs[place].tool_version and runs[place].tool_version != runs[place - 1].tool_version
    ]
    return {changed[-1]: runs[changed[-1]].tool_version[:24]} if changed else {}


def _first_commands(run: Run, keys: Sequence[str], read: RunTrials) -> Mapping[str, tuple[str, str]]:
    """Return the first different command of each scenario, before and after. One query, none without keys."""
    before = read.kept.get(run.baseline_id or 0)
    if not keys or before is None:
        return {}
    sides = {key: (_ended(before, key), _ended(read.digest, key)) for key in keys}
    found = first_divergences((run.baseline_id or 0, run.pk), sides).scenarios
    known = {key: each.divergence for key, each in found.items() if each.divergence}
    return {key: (each.before, each.after) for key, each in known.items()}


def _ended(digest: Digest, key: str) -> list[EndedTrial]:
    return [EndedTrial(each.pk, each.outcome) for each in digest.ended if each.key == key]


def _broken(
    key: str,
    row: ScenarioRow,
    lost: Sequence[str],
    trial: int | None,
    commands: Mapping[str, tuple[str, str]],
) -> BrokenScenario:
    before, after = commands.get(key, ("", ""))
    return BrokenScenario(key, row.baseline, row.marks, (*lost, "")[0], after, before, trial)
