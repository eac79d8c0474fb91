"""Summarise a finished run as text: eval cases in tool-forge's layout, everything else in evalhub's.

Only terminals get colours.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from evalhub.lib.numbers import format_count
from evaluators.grading.evaluator import LAYER as EVALUATORS
from evaluators.grading.scores.weighted_score import NAME as AGGREGATE
from evaluators.grading.suite_summary import suite_summary
from evaluators.statistics import verdict_sentences
from evaluators.statistics.comparability import name_incomparable
from evaluators.statistics.measure_change import ChangeVerdict
from evaluators.statistics.regression import find_deciding
from runs.compare.lost_scenarios import change_from_json
from runs.compare.measure_changes import HEADLINE
from runs.compare.shown_changes import reference_words, since_words
from runs.exchange.exports.document import first_trials
from runs.exchange.exports.result_formats import suite_run
from runs.models import Run
from runs.results.failure_reasons import trial_reasons
from runs.results.measures import label_of_key


@dataclass(frozen=True)
class Terminal:
    """Properties of the output terminal."""

    width: int | None = None
    """In cells; None without a terminal."""
    colour: bool = False


class TextOutput(Protocol):
    """An output stream."""

    def isatty(self) -> bool: ...


def terminal_of(stream: TextOutput) -> Terminal:
    """Return a stream's terminal properties; NO_COLOR disables colours."""
    if not stream.isatty():
        return Terminal()
    return Terminal(shutil.get_terminal_size().columns, not os.environ.get("NO_COLOR"))


def print_digest(digest: Mapping[str, Any], terminal: Terminal, *, details: bool = False) -> str:
    """Return a run's digest as text, lines ended by newlines; `details` as in `summary`."""
    run = digest["run"]
    if run["format"] != "tool_forge":
        return summary_lines(digest, width=terminal.width, colour=terminal.colour, details=details)
    stored = Run.objects.select_related("suite", "suite_version", "target").get(pk=run["id"])
    return suite_summary(suite_run(stored)) + "".join(f"  {line}\n" for line in _further(run))


def _further(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield evalhub's additions to the contract's summary."""
    if run["error"]:
        yield f"The run did not start: {run['error']}"
    if run["cancelled"]:
        yield f"{run['cancelled']} of {run['trials']} trials were cancelled."
    if run["release_rule"]:
        yield run["release_rule"]["sentence"]
    summarised = (run["fingerprint"].get("staleness") or {}).get("warnings") or []
    yield from (f"⚠ {warning}" for warning in run["warnings"] if warning not in summarised)
    yield name_run(run)


MARKS = {"pass": "✓", "fail": "✗", "error": "!", None: "–"}
STYLES = {"pass": "green", "fail": "red", "error": "yellow", None: "dim"}
CHANGES = (
    ("regressions", "No longer passing", "red"),
    ("new_passes", "Newly passing", "green"),
    ("added", "Added", ""),
    ("removed", "Removed", ""),
)
VERDICT_STYLES = {"regressed": "bold red", "improved": "green"}
"""Comparison results, regressions first: key in the document, label, style."""
WIDTH_WITHOUT_TERMINAL = 120
LONGEST_REASON = 200
MOST_TRIALS = 60
"""Most trials listed; the page lists all."""


def summary_lines(
    document: Mapping[str, Any], *, width: int | None = None, colour: bool = False, details: bool = False
) -> str:
    """Return a run's summary: a line per trial, reasons of failures, totals.

    `details` also shows the evaluators of trials that passed.
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or WIDTH_WITHOUT_TERMINAL,
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        legacy_windows=False,
    )
    run = document["run"]
    console.rule(escape(name_run(run)), align="left", style="dim")
    console.print(_trials(document["trials"], details=details))
    if (more := run["trials"] - len(first_trials(document))) > 0:
        console.print(Text(f"  … {more} more trials", style="dim"))
    if run["error"]:
        console.print(Text(f"  The run did not start: {run['error']}", style="yellow"))
    console.print(Text("  " + describe_totals(run)))
    for line in verdict_lines(run):
        console.print(Text(f"  {line}", style=VERDICT_STYLES.get(run["verdict"], "")))
    for line in retest_lines(run):
        console.print(Text(f"  {line}"))
    if run["release_rule"]:
        console.print(Text(f"  {run['release_rule']['sentence']}"))
    for name, word, style in CHANGES:
        if run[name]:
            keys = broken_first(run, run[name])
            line = f"  {word}, compared with run {run['baseline']} ({len(keys)}): {', '.join(keys)}"
            console.print(Text(line, style=style))
    if changed := name_incomparable({key: tuple(why) for key, why in run["not_comparable"].items()}):
        console.print(Text(f"  ! {changed}", style="yellow"))
    tampered = [tampered_sentence(run["tampered"])] if run["tampered"] else []
    for warning in (*tampered, *run["warnings"], *run["cost_notes"]):
        console.print(Text(f"  ⚠ {warning}", style="yellow"))
    return out.getvalue()


def retest_lines(run: Mapping[str, Any]) -> list[str]:
    """Return what fresh trials show, a sentence for each scenario that ran again or looked worse."""
    return [f"{each['key']}: {each['sentence']}." for each in run.get("retests") or ()]


def tampered_sentence(trials: int) -> str:
    """Return a warning of trials whose agent changed what decides its gates."""
    return f"In {format_count(trials, 'trial')} the agent changed what decides its gates. See the trials' warnings."


def verdict_lines(run: Mapping[str, Any]) -> list[str]:
    """Return the run's verdict against its baseline and what it rests on, or why it has none.

    Nothing without a comparison.
    """
    if run["verdict_reason"]:
        return [run["no_verdict"]]
    changes = [change_from_json(each) for each in run["measures"] if each["measure"] in HEADLINE]
    if not run["verdict"] or not changes:
        return []
    verdict = ChangeVerdict(run["verdict"])
    deciding = find_deciding(changes)
    label = label_of_key(deciding.measure)
    size = verdict_sentences.describe_size(deciding, deciding.effect)
    interval = verdict_sentences.describe_interval(deciding)
    side = run.get("compared_with") or {}
    return [
        f"{verdict_sentences.worse_undecided(verdict, changes[0]) or verdict.label}{since_words(side)} compared with {reference_words(side, run['baseline'])}: {label} {size}"
        + (f" ({interval})" if interval else "")
        + f", {verdict_sentences.scenarios_worse(deciding)}.",
        verdict_sentences.explain_verdict(deciding),
    ]


def broken_first(run: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Return scenario keys, those first that the verdict's table of scenarios names."""
    named = {key for measure in run["measures"][:1] for key in (*measure["broke"], *measure["mended"])}
    return sorted(keys, key=lambda key: key not in named)


def name_run(run: Mapping[str, Any]) -> str:
    """Return one line with the run's number, suite and target."""
    parts = [f"{run['suite']} v{run['suite_version']}", f"on {run['target']}"]
    parts += [run["model"]] if run["model"] else []
    if name := run.get("guidance_name"):
        # Unnamed guidance is called "guidance 3".
        path = run.get("guidance_path")
        over = f" over {path}" if path and not name.endswith(path) else ""
        parts.append(f"guidance {name.removeprefix('guidance ')}{over}")
    return f"run {run['id']}: " + " · ".join(parts)


def _trials(trials: Sequence[Mapping[str, Any]], *, details: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=3, justify="right")
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column(justify="right")
    for trial in trials:
        decided = [gate["passed"] for gate in trial["gates"] if gate["passed"] is not None]
        scores = [judging["score"] for judging in trial["judgings"] if judging["score"] is not None]
        table.add_row(
            Text(MARKS[trial["outcome"]], style=STYLES[trial["outcome"]]),
            _name(trial, details=details),
            f"gates {sum(decided)}/{len(decided)}" if decided else "",
            f"judge {sum(scores) / len(scores):.2f}" if scores else "",
            f"{trial['seconds']:.2f} s" if trial["seconds"] is not None else "·",
        )
    return table


def _name(trial: Mapping[str, Any], *, details: bool) -> Text:
    name = trial["scenario"] + (f" #{trial['index'] + 1}" if trial["index"] else "")
    text = Text(name)
    if trial.get("retest"):
        text.append(" (run again)", style="dim")
    for reason in trial_reasons(trial):
        text.append(f"\n→ {reason[:LONGEST_REASON]}", style="dim")
    if details or trial["outcome"] != "pass":
        for line in evaluator_lines(trial["scores"]):
            text.append(f"\n{line}", style="dim")
    for warning in trial["warnings"]:
        text.append(f"\n⚠ {warning}", style="yellow")
    return text


def evaluator_lines(scores: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each evaluator of AgentV with its score and verdict, then its misses, hits and reasoning."""
    for score in scores:
        if score["layer"] != EVALUATORS or score["name"] == AGGREGATE:
            continue
        value = "no score" if score["value"] is None else f"{score['value']:.2f}"
        yield f"  {score['name']} {value}{f' {verdict}' if (verdict := score['verdict']) else ''}"
        yield from evaluator_findings(score)


def evaluator_findings(score: Mapping[str, Any]) -> Iterator[str]:
    """Yield an evaluator's misses, hits and reasoning, each on an indented line; its error if it has none."""
    yield from (f"    ✗ {text}" for text in score["misses"])
    yield from (f"    ✓ {text}" for text in score["hits"])
    if reasoning := score["reasoning"] or score.get("error"):
        yield f"    {reasoning}"


def describe_totals(run: Mapping[str, Any]) -> str:
    """Return a run's totals in one line, with its times."""
    parts = [f"{run['passed']}/{run['trials']} passed"]
    parts += [f"{run[name]} {name}" for name in ("failed", "errors", "cancelled") if run[name]]
    if run["seconds"] is not None:
        parts.append(f"{run['seconds']:.1f} s total, {run['agent_seconds']:.1f} s agent time")
    if run["cost_usd"] is not None:
        parts.append(f"{'at least ' if run['cost_is_partial'] else ''}${run['cost_usd']:.2f}")
    return " | ".join(parts)
