"""Write runs and their verdicts as Markdown, for a job summary or a pull request."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.db.models import Count

from evalhub.lib.numbers import format_count, format_money, format_percent
from evaluators.redaction import redact_patterns
from evaluators.statistics import verdict_sentences
from evaluators.statistics.comparability import Reasons, describe_incomparable
from evaluators.statistics.measure_change import MeasureChange, Scale
from evaluators.statistics.regression import decide_overall, find_deciding
from evaluators.statistics.retest import describe_retest
from runs.compare.comparison import compare_chosen, find_incomparable
from runs.compare.lost_scenarios import (
    RegressedScenario,
    changes_of_run,
    failing_scenarios,
    lost_keys,
    lost_scenarios,
    stored_changes,
)
from runs.compare.measure_changes import HEADLINE, PASS
from runs.compare.retests import retests_of
from runs.compare.shown_changes import reference_words, since_words
from runs.exchange.exports.files import JOB_SUMMARY
from runs.models import Run
from runs.models.run import Arm, RunState, Trigger
from runs.results.measures import label_of_key
from runs.results.run_list import release_result

MOST_REASONS = 3
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_WARNINGS = 10
MOST_ERRORS = 5
TABLE_HEAD = "| Measure | Base | New | Difference | 95 % interval | n | Verdict |\n| --- | --: | --: | --: | --: | --- | --- |"


OLD_ARM = "The other versions of guidance in this launch are compared with this run."
RELATED = ("suite", "suite_version", "target", "guidance", "project", "baseline__guidance")
"""What a summary reads of a run."""
LONGEST = 200
"""Characters of a text; the run's page has all of it."""
_BACKTICKS = re.compile("`+")
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of control and direction characters, which could end a line or disguise a text."""


@dataclass(frozen=True)
class Compared:
    """A comparison of two runs, as a summary shows it."""

    base: int
    headline: tuple[MeasureChange, ...]
    """The pass rate first; empty if nothing could be compared."""
    lost: tuple[RegressedScenario, ...]
    lost_count: int
    not_comparable: Mapping[str, Reasons]
    no_verdict: str = ""
    """Why there is no verdict, if one of the runs has too many errors."""
    side: Mapping[str, Any] = field(default_factory=dict)
    """What the stored verdict was made with, as `Run.old_side`; empty for two chosen runs."""


Transcripts = Mapping[str, str]
"""The transcript of a failed trial as Markdown, by scenario key: a link to its file among the job's results."""


def run_summary(run: Run, transcripts: Transcripts | None = None) -> str:
    """Return a finished run's summary against its baseline. Expects suite, suite_version and target to be loaded."""
    if run.baseline is None:
        failing, count = failing_scenarios(run)
        why = run.no_verdict or (OLD_ARM if run.arm == Arm.REFERENCE else "No baseline to compare with.")
        lines = [_heading(run, ""), why] if not run.error else [_heading(run, "")]
        lines += _scenarios("Failing scenarios", failing, count, transcripts)
        return _text([*lines, *_foot(run)])
    changes = stored_changes(run.pk)
    keys = lost_keys(changes_of_run(run.pk))
    compared = Compared(
        run.baseline.pk,
        _headline(changes),
        tuple(lost_scenarios(run.baseline, run, keys)) if keys else (),
        len(keys),
        find_incomparable(run.baseline, run),
        run.no_verdict,
        run.old_side,
    )
    return _compared_summary(run, compared, transcripts)


def comparison_summary(base: Run, new: Run) -> str:
    """Return the summary of a run against another one. Expects suite, suite_version and target to be loaded."""
    compared = compare_chosen(base, new)
    keys = lost_keys(compared.scenarios)
    lost = tuple(lost_scenarios(base, new, keys)) if keys else ()
    return _compared_summary(
        new,
        Compared(
            base.pk,
            _headline(compared.headline),
            lost,
            len(keys),
            compared.not_comparable,
            compared.no_verdict,
        ),
    )


def _headline(changes: Sequence[MeasureChange]) -> tuple[MeasureChange, ...]:
    """Return the headline measures; none without a pass rate, because then nothing was compared."""
    headline = tuple(each for each in changes if each.measure in HEADLINE)
    return headline if any(each.measure == PASS for each in headline) else ()


def _compared_summary(run: Run, compared: Compared, transcripts: Transcripts | None = None) -> str:
    verdict = _verdict_words(compared.headline) if compared.headline else ""
    lines = [_heading(run, verdict)]
    if compared.headline:
        lines += [_verdict(run, compared), "\n".join([TABLE_HEAD, *map(_row, compared.headline)])]
    elif compared.no_verdict:
        lines.append(compared.no_verdict)
    elif not run.error:
        lines.append(f"Nothing to compare with run {compared.base}: no scenario has results in both runs.")
    if compared.not_comparable:
        keys = ", ".join(format_code(key) for key in list(compared.not_comparable)[:MOST_WARNINGS])
        lines.append(f"{describe_incomparable(list(compared.not_comparable.values()))} ({keys}).")
    lines += _scenarios("Scenarios that pass less often", compared.lost, compared.lost_count, transcripts)
    return _text([*lines, *_foot(run)])


def _heading(run: Run, verdict: str) -> str:
    """Return the run's heading; names are foreign text, so they are code."""
    parts = [f"{format_code(run.suite.slug)} v{run.suite_version.number} on {format_code(run.target.name)}"]
    parts += [format_code(run.model)] if run.model else []
    parts += [f"guidance {format_code(str(run.guidance))}{_old_arm(run)}"] if run.guidance else []
    first = "Cancelled" if run.state == RunState.CANCELLED else verdict or f"Run {run.pk}"
    return f"### {first}: {', '.join(parts)}"


def _old_arm(run: Run) -> str:
    """Return the guidance of the arm that a run is compared with; empty for other runs."""
    if run.baseline is None or run.baseline.arm != Arm.REFERENCE:
        return ""
    return f" against {format_code(str(run.baseline.guidance))}"


def _verdict_words(headline: Sequence[MeasureChange]) -> str:
    verdict = decide_overall(headline)
    return verdict_sentences.worse_undecided(verdict, headline[0]) or verdict.label


def _verdict(run: Run, compared: Compared) -> str:
    """Return the verdict in a sentence: the measure that decides, its interval, and what could be shown."""
    pass_rate = compared.headline[0]
    change = find_deciding(compared.headline)
    effect = verdict_sentences.describe_size(change, change.effect)
    interval = verdict_sentences.describe_interval(change)
    measured = f"{label_of_key(change.measure)} {effect}"
    measured += f" (95 % interval {interval})" if interval else ""
    return (
        f"**{_verdict_words(compared.headline)}{since_words(compared.side)}** against {reference_words(compared.side, compared.base)}: {measured}."
        f" {verdict_sentences.scenarios_worse(pass_rate)}."
        f" {verdict_sentences.explain_verdict(change, dollars_a_trial=run.cost_of_trial)}"
    )


def _row(change: MeasureChange) -> str:
    cells = (
        label_of_key(change.measure),
        _value(change, change.before),
        _value(change, change.after),
        verdict_sentences.describe_size(change, change.effect),
        verdict_sentences.describe_interval(change) or "–",
        f"{format_count(change.scenarios, 'scenario')}, {change.trials[0]} and {format_count(change.trials[1], 'trial')}",
        change.verdict.label,
    )
    return f"| {' | '.join(cells)} |"


def _value(change: MeasureChange, value: float | None) -> str:
    if change.scale is Scale.POINTS:
        return format_percent(value, max(change.trials))
    return "–" if value is None else f"{value:.4g}"


def _scenarios(
    title: str, lost: Sequence[RegressedScenario], count: int, transcripts: Transcripts | None = None
) -> list[str]:
    """Return the section of the scenarios; nothing without any."""
    if not lost:
        return []
    items = [
        line
        for scenario in lost
        for line in (*_scenario(scenario), *_transcript(scenario.key, transcripts or {}))
    ]
    items += [f"- … and {format_count(count - len(lost), 'more scenario')}"] if count > len(lost) else []
    return [f"**{title}**", "\n".join(items)]


def _scenario(lost: RegressedScenario) -> list[str]:
    before, now = lost.rates
    passed = f"{now.passed} of {format_count(now.n, 'trial')} passed"
    if lost.before:
        passed = f"{before.passed} of {before.n} → {passed}"
    lines = [f"- {format_code(lost.key)}: {passed}"]
    if lost.command:
        lines.append(f"  - {format_code(lost.command.replace('`', ''))}")
    elif lost.difference:
        lines += [
            f"  - First different command ({lost.difference.number}), base: {_command(lost.difference.base)}",
            f"  - New: {_command(lost.difference.new)}",
        ]
        return lines
    sides = [("Failed before", lost.base_reasons), ("Fails now", lost.new_reasons)]
    return lines + [f"  - {word}: {_reasons(reasons)}" for word, reasons in sides if reasons]


def _transcript(key: str, transcripts: Transcripts) -> list[str]:
    return [f"  - Transcript: {transcripts[key]}"] if key in transcripts else []


def transcript_link(path: Path, summary: str) -> str:
    """Return a transcript's file as Markdown for a summary: relative to a summary's file, else to the job's artifacts."""
    if summary != JOB_SUMMARY:
        place = os.path.relpath(path, Path(summary).parent)
        return f"[{format_code(path.name)}]({quote(Path(place).as_posix())})"
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, number = (os.environ.get(name, "") for name in names)
    shown = format_code(path.as_posix())
    if not (server and repository and number):
        return shown
    return f"{shown} in the [artifacts]({server}/{repository}/actions/runs/{number}#artifacts)"


def _command(line: str | None) -> str:
    return "no more commands" if line is None else format_code(line)


def _reasons(reasons: Sequence[str]) -> str:
    shown = "; ".join(map(format_code, reasons[:MOST_REASONS]))
    more = len(reasons) - MOST_REASONS
    return f"{shown}; … and {more} more" if more > 0 else shown


def _foot(run: Run) -> list[str]:
    """Return the error, the warnings, the release rule, the totals with the cost, and where the run is found."""
    lines = (
        [f"⚠ The run did not start: {format_code(redact_patterns(run.error), longest=500)}"]
        if run.error
        else []
    )
    lines += [f"⚠ {format_code(redact_patterns(each), longest=500)}" for each in run.warnings[:MOST_WARNINGS]]
    more = len(run.warnings) - MOST_WARNINGS
    lines += [f"⚠ … and {format_count(more, 'more warning')}"] if more > 0 else []
    if run.state == RunState.CANCELLED:
        done = run.passed + run.failed + run.errors
        lines.append(f"⚠ The run was cancelled: {done} of {format_count(run.trials, 'trial')} finished.")
    lines += _errors(run)
    lines += _retests(run)
    lines += _baseline_file(run)
    released = release_result(run)
    lines += [released.sentence] if released else []
    parts = [f"{run.passed} of {format_count(run.trials, 'trial')} passed"]
    totals: list[tuple[str, Any]] = [
        ("failed", run.failed),
        ("errors", run.errors),
        ("cancelled", run.cancelled),
    ]
    parts += [f"{number} {word}" for word, number in totals if number]
    at_least = "at least " if run.is_cost_partial else ""
    parts.append(
        "no cost reported" if run.cost_usd is None else f"cost {at_least}{format_money(run.cost_usd)}"
    )
    address = _address(run)
    parts.append(f"[run {run.pk}]({address})" if address else f"run {run.pk}")
    return [*lines, " · ".join(parts)]


def _baseline_file(run: Run) -> list[str]:
    """Return what file the baseline came from; nothing for a run of this evalhub."""
    if run.baseline is None or run.baseline.trigger != Trigger.IMPORT:
        return []
    file = run.baseline.launch.request.get("file")
    return [f"Baseline: run {run.baseline.pk}, imported from {format_code(str(file))}."] if file else []


def _errors(run: Run) -> list[str]:
    """Return the errors of the run's trials, the most common first, each with its number of trials."""
    errors = run.trial_set.filter(round=0, outcome="error").values_list("error").annotate(n=Count("pk"))
    rows = list(errors.order_by("-n", "error")[: MOST_ERRORS + 1])
    lines = [
        f"⚠ {format_count(n, 'trial')} hit an error: {format_code(redact_patterns(error), longest=500)}"
        for error, n in rows[:MOST_ERRORS]
    ]
    return lines + (["⚠ … and other errors"] if len(rows) > MOST_ERRORS else [])


def _retests(run: Run) -> list[str]:
    """Return what fresh trials show, a line for each scenario that ran again or looked worse."""
    known = retests_of(run)
    rows = [f"- {format_code(each.key)}: {describe_retest(each)}" for each in known]
    return ["**Run again**", "\n".join(rows)] if rows else []


def _address(run: Run) -> str:
    """Return the address of the run's page; empty where only this machine would find it."""
    is_local = urlsplit(settings.PUBLIC_URL).hostname in LOOPBACK
    return "" if is_local else f"{settings.PUBLIC_URL}/runs/{run.pk}/"


def _text(blocks: Sequence[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def format_code(text: str, *, longest: int = LONGEST) -> str:
    """Return a text as a code span of one line, shortened to `longest` characters.

    A code span holds no links, images, HTML or mentions, and its fence is longer than any run of backticks in it
    (CommonMark 0.31, 6.1). It doesn't belong in a table, where a pipe would end its cell.
    """
    line = " ".join(
        "".join(
            " " if char.isspace() else "" if unicodedata.category(char) in _UNSEEN else char for char in text
        ).split()
    )
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    fence = "`" * (1 + max((len(each) for each in _BACKTICKS.findall(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line or ' '}{pad}{fence}"
