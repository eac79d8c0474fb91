"""What a run's page shows first: its answer in a sentence, its line as a picture, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString

from evalhub.lib.numbers import format_count, format_decimals, format_percent
from evalhub.web.states import look_of_state
from evaluators.grading.suite_result import compare_passes
from evaluators.statistics.comparability import Reasons, describe_incomparable
from evaluators.statistics.line import FEWEST_RUNS
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.comparison import passed_of
from runs.compare.differences import Cause, FingerprintDifference, causes_of, fingerprint_differences
from runs.compare.line import RUNS_SHOWN, DrawnRun, draw_large, line_of_runs
from runs.compare.lost_scenarios import ChangedScenario, first_with, with_failing_commands
from runs.compare.shown_changes import ShownChange, ShownReference, ShownVerdict, since_words
from runs.compare.side_by_side import EndedTrial, first_divergences
from runs.launch.separation import Separation, separation_of
from runs.models import Baseline, Run
from runs.models.run import MOSTLY_MEASURED, NOT_CONFIRMING, RunState
from runs.results.digests import Digest, RunTrials
from runs.results.run_list import BY_VERDICT, RunAnswer
from runs.results.run_page.scenarios import ScenarioRow


@dataclass(frozen=True)
class AgainstBaseline:
    """A run's changes from its baseline."""

    changed: tuple[ChangedScenario, ...]
    differences: tuple[FingerprintDifference, ...]
    regressions: int
    new_passes: int
    unmeasured: int
    """Scenarios with only errors on one side."""
    not_comparable: str = ""
    """How many scenarios can't be compared and why; empty if none."""


def against_baseline(
    run: Run,
    read: RunTrials,
    rows: Sequence[ScenarioRow],
    left_out: Mapping[str, Reasons],
    named: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> AgainstBaseline | None:
    """Return the run's comparison with its baseline, None without one. Expects the baseline's guidance to be loaded.

    `left_out` are the scenarios that can't be compared, `named` those that the verdict's table says broke or improved:
    they come first, also where single trials failed before or pass still.
    """
    baseline = run.baseline
    if baseline is None:
        return None
    compared = compare_passes(passed_of(read.before), passed_of(read.outcomes), left_out)
    by_key = {row.key: row for row in rows}
    # The contract of suite results counts errors as failures, verdicts do not.
    unmeasured = [
        key
        for key in (*compared.regressions, *compared.new_passes)
        if _only_errors(read.before[key]) or _only_errors(read.outcomes[key])
    ]
    worse = [key for key in compared.regressions if key not in unmeasured]
    better = [key for key in compared.new_passes if key not in unmeasured]
    shown = {
        "regressed": named[0],
        "worse": [key for key in worse if key not in named[0]],
        "improved": named[1],
        "better": [key for key in better if key not in named[1]],
        "unmeasured": unmeasured,
        "added": compared.added,
        "removed": compared.removed,
    }
    return AgainstBaseline(
        changed=tuple(_changed(key, by_key.get(key), state) for state, keys in shown.items() for key in keys),
        differences=tuple(fingerprint_differences(baseline, run)),
        regressions=len(worse),
        new_passes=len(better),
        unmeasured=len(unmeasured),
        not_comparable=describe_incomparable(list(compared.not_comparable.values())),
    )


def _changed(key: str, row: ScenarioRow | None, state: str = "") -> ChangedScenario:
    """Return a scenario with the trial to show: the first that went wrong, else the first; no row if the run lacks it."""
    if row is None:
        return ChangedScenario(key, (), (), state=state)
    wrong = (each for each in row.trials if each.mark in ("fail", "error"))
    reason = next((each.lost[0] for each in row.trials if each.lost), "")
    return ChangedScenario(key, row.before, row.now, reason, trial=next(wrong, row.trials[0]).pk, state=state)


def _only_errors(outcomes: Sequence[str]) -> bool:
    return set(outcomes) <= {"error"}


def pins_of(run: Run) -> list[Baseline]:
    """Return the baselines that pin the run. One query."""
    return list(Baseline.objects.filter(run=run).order_by("branch"))


@dataclass(frozen=True)
class ShownCauses:
    """The causes of a regression."""

    causes: list[Cause]
    separation: Separation


def shown_causes(run: Run) -> ShownCauses | None:
    """Return what changed before a regression; None for other verdicts. Two queries, else none."""
    if run.verdict != ChangeVerdict.REGRESSED:
        return None
    separation = separation_of(run)
    return ShownCauses(causes_of(run, separation.baseline), separation) if separation else None


JUDGE = "judge/judge"
BROKEN_SHOWN = 3


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
    broken: tuple[ChangedScenario, ...]
    more_broken: int
    errors: tuple[tuple[str, int], ...]
    """The most frequent errors, each with its number of trials."""


def first_screen(
    run: Run,
    answer: RunAnswer,
    read: RunTrials,
    rows: Sequence[ScenarioRow],
    *,
    verdict: ShownVerdict | None,
    against: AgainstBaseline | None,
    line: ShownReference | None,
    earlier: Sequence[Run],
    rule: str,
) -> FirstScreen:
    """Return the first screen of a closed run that ran; `rule` is the sentence of its suite's release rule.

    `earlier` are the runs that `find_earlier` returns. Up to three queries where scenarios broke.
    """
    lost = [each for each in _lost(against, rows) if each.now]
    strong, text, aside = _sentence(run, answer, verdict, len(lost) if against else 0, rule)
    of = "its line" if line and line.runs else "the same suite, target and model"
    picture, caption = _picture([*map(_drawn_run, reversed(earlier)), _drawn_run(run)], answer, of)
    errors = (each.lost[0] for each in read.digest.trials if each.mark == "error" and each.lost)
    return FirstScreen(
        look=look_of_state(answer)[0],
        strong=strong,
        text=text,
        aside=aside,
        picture=picture,
        caption=caption,
        broken=tuple(with_failing_commands(_with_first_commands(run, lost[:BROKEN_SHOWN], read))),
        more_broken=len(lost[BROKEN_SHOWN:]),
        errors=tuple(Counter(errors).most_common(BROKEN_SHOWN)),
    )


def _lost(against: AgainstBaseline | None, rows: Sequence[ScenarioRow]) -> list[ChangedScenario]:
    """Return the scenarios that pass less often: those of the verdict's table, then by loss.

    Without a run before, return those that failed, the worst first.
    """
    if against is None:
        failed = [row for row in rows if "fail" in row.now]
        return [_changed(row.key, row) for row in sorted(failed, key=lambda row: row.rates[1].share)]
    proved = [each for each in against.changed if each.state == "regressed"]
    named = {each.key for each in proved}
    worse = (row for row in rows if row.change == "worse" and row.key not in named)
    return [*proved, *(_changed(row.key, row) for row in sorted(worse, key=lambda row: row.gain))]


def _sentence(
    run: Run,
    answer: RunAnswer,
    verdict: ShownVerdict | None,
    fewer: int,
    rule: str,
) -> tuple[str, str, str]:
    """Return the sentence's beginning, its end, and the change's figures; `fewer` scenarios pass less often."""
    ended = run.passed + run.failed + run.errors
    passed = f"{run.passed} of {format_count(run.passed + run.failed, 'trial')} passed"
    if answer == "cancelled":
        return "Cancelled", f" after {ended} of {format_count(run.trials, 'trial')}: {passed}.", ""
    if answer in ("tool_not_started", "errors", "unchecked"):
        return run.no_verdict, "", ""
    if answer == "failed":
        return f"{format_count(run.failed, 'trial')} failed", f": {passed}, and this suite asks for all.", ""
    if answer == "below_release_rule":
        return "Below threshold", f". {rule}", ""
    if verdict is None:
        return passed, ". Nothing comparable ran before: this begins a line for later runs.", ""
    deciding = verdict.deciding
    aside = f"({', '.join(filter(None, (deciding.size, deciding.interval)))})"
    if answer == "as_expected":
        fell = since_words(run.old_side)
        return f"As expected{fell}", f": {deciding.label.lower()} {deciding.explanation}", aside
    change = _change_words(deciding)
    if answer not in ("regressed", "improved"):
        return (
            verdict.worse_undecided
            or (look_of_state(answer)[1].capitalize() if answer in BY_VERDICT.values() else verdict.label),
            f": {change[0].lower()}{change[1:]}",
            aside,
        )
    of = format_count(deciding.change.scenarios, "scenario")
    changed = deciding.change.broke if answer == "regressed" else deciding.change.mended
    if changed:
        did = f"{len(changed)} of {of} {'broke' if answer == 'regressed' else 'improved'}"
    elif fewer and answer == "regressed":
        did = f"{fewer} of {of} {'passes' if fewer == 1 else 'pass'} less often"
    else:
        return change, "", aside
    return did, f", and the {change[0].lower()}{change[1:]}", aside


def _change_words(shown: ShownChange) -> str:
    """Return a headline measure's values before and after, in words."""
    before, after = shown.change.before, shown.change.after
    if before is None or after is None:
        return f"{shown.label} can't be compared"
    show = format_decimals if shown.change.measure == JUDGE else format_percent
    verb = "fell" if after < before else "rose"
    if show(before) == show(after):
        return f"{shown.label} stayed at {show(after)}"
    return f"{shown.label} {verb} from {show(before)} to {show(after)}"


def _picture(runs: Sequence[DrawnRun], answer: RunAnswer, of: str) -> tuple[SafeString, str]:
    """Return the picture of the line, and a sentence about it; empty if no trial passed or failed."""
    line = line_of_runs(runs, answer)
    if line is None:
        return SafeString(""), ""
    before = len(line.rates) - 1
    share = format_percent(line.rates[-1])
    if line.band is None:
        missing = format_count(max(FEWEST_RUNS - before, 1), "more run")
        label = f"Pass rate of {format_count(before, 'earlier run')} and of this one, {share}"
        return draw_large(line, label), f"After {missing} this chart shows the expected range."
    low, high = map(format_percent, line.band)
    label = (
        f"Pass rate of {format_count(before, 'earlier run')} and of this one, {share}, "
        f"expected between {low} and {high}"
    )
    return (
        draw_large(line, label),
        f"Grey: the last {format_count(before, 'run')} of {of}, and where this one was expected.",
    )


def _drawn_run(run: Run) -> DrawnRun:
    return DrawnRun(run.passed, run.failed, run.errors, run.verdict, run.tool_version, run.pass_rate)


def find_earlier(run: Run, line: ShownReference | None) -> list[Run]:
    """Return the runs that a run is shown with, newest first: its line's, else the measured ones before it.

    These are of the same suite, target and model. None for an open run; one query without a line.
    """
    if run.is_open:
        return []
    if line and line.runs:
        return [each.run for each in line.runs]
    same = Run.objects.filter(
        NOT_CONFIRMING,
        MOSTLY_MEASURED,
        suite=run.suite_id,
        target=run.target_id,
        model=run.model,
        branch__in=run.line_branches,
        pk__lt=run.pk,
        state=RunState.FINISHED,
        is_experiment=False,
    )
    return list(same.only(*DrawnRun._fields).order_by("-pk")[: RUNS_SHOWN - 1])


def _with_first_commands(run: Run, lost: Sequence[ChangedScenario], read: RunTrials) -> list[ChangedScenario]:
    """Return scenarios with a trial that passed before, and where the commands part ways. At most one query."""
    before = read.baseline
    if not lost or before is None:
        return list(lost)
    sides = {each.key: (_ended(before, each.key), _ended(read.digest, each.key)) for each in lost}
    diverging = first_divergences((run.baseline_id or 0, run.pk), sides).scenarios
    apart = {key: each.divergence for key, each in diverging.items() if each.divergence}
    passed = first_with(before, "pass")
    with_passed = [replace(each, passed=passed.get(each.key)) for each in lost]
    return [
        replace(each, command=apart[each.key].after, instead_of=apart[each.key].before)
        if each.key in apart
        else each
        for each in with_passed
    ]


def _ended(digest: Digest, key: str) -> list[EndedTrial]:
    return [EndedTrial(each.pk, each.outcome) for each in digest.ended if each.key == key]
