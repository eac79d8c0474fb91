"""Compare runs with the first one."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.statistics import verdict_sentences
from evaluators.statistics.comparability import name_incomparable
from evaluators.statistics.measure_change import MeasureChange
from runs.compare.comparison import comparison_between
from runs.compare.lost_scenarios import change_json
from runs.compare.measure_changes import RunComparison
from runs.compare.side_by_side import MOST_COMPARED, ComparedRun, compared_with_first, divergences_json
from runs.errors import NotWritable
from runs.exchange.exports.exports import RULES, has_regressed
from runs.exchange.exports.files import write_summary
from runs.exchange.exports.measure_table import plain_measure_table
from runs.exchange.exports.summary_markdown import comparison_summary
from runs.models import Run
from runs.results.counting import describe_exit_sources
from runs.results.find_run import find_run_or_refuse
from scenarios.commands import (
    NOT_MEASURED,
    PASSED,
    REGRESSED,
    EvalhubCommand,
    Refused,
    Result,
    add_summary_argument,
)

FLIPS = {
    "regressions": "No longer passing",
    "new_passes": "Newly passing",
    "added": "Added",
    "removed": "Removed",
}


class Command(EvalhubCommand):
    help = (
        "Compare run B, and further runs, with run A, measure by measure. Exits with 3 if one regressed, with 4 if a third "
        "or more of a run's trials hit errors."
    )
    examples = (
        "11 12",
        "11 12 13 14",
        "11 12 --json",
        "11 12 --summary-file -",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("a", type=int, metavar="A", help="run to compare with, such as a baseline")
        parser.add_argument("b", type=int, metavar="B", help="newer run")
        parser.add_argument(
            "others", type=int, metavar="C", nargs="*", help=f"more runs, up to {MOST_COMPARED} in all"
        )
        add_summary_argument(parser)
        parser.add_argument(
            "--no-fresh", action="store_true", help="leave out the further trials run for a comparison"
        )
        parser.add_argument(
            "--regression-rule",
            choices=RULES,
            help="verdict: a headline measure regressed; pass-fail: a scenario passed and no longer does"
            " (default: pass-fail for eval files of tool-forge, else verdict)",
        )

    def work(self, options: dict[str, Any]) -> Result:
        keys = list(dict.fromkeys([options["a"], options["b"], *options["others"]]))
        if len(keys) > MOST_COMPARED:
            raise Refused(
                f"You can compare at most {MOST_COMPARED} runs at once; {len(keys)} are given.",
                id="compare/too-many",
            )
        # One query a run: with several numbers in one, SQLite fails on those beyond 64 bits.
        runs = [find_run_or_refuse(key, "project", "suite", "guidance") for key in keys]
        before, *later = runs if len(runs) > 1 else runs * 2
        if options["summary_file"]:
            _write_summary(options["summary_file"], before, later)
        comparisons = compared_with_first([before, *later], fresh=not options["no_fresh"])
        documents = [_document(before, compared) for compared in comparisons]
        texts = [_text(compared, document) for compared, document in zip(comparisons, documents, strict=True)]
        code = _exit_code(documents, options["regression_rule"])
        if len(documents) == 1:
            return Result(texts[0], documents[0], code)
        headed = [
            f"Run {compared.run.pk} against run {before.pk}\n{text}"
            for compared, text in zip(comparisons, texts, strict=True)
        ]
        return Result("\n\n".join(headed), {"before": before.pk, "comparisons": documents}, code)


def _exit_code(documents: Sequence[Mapping[str, Any]], rule: str | None) -> int:
    if any(has_regressed(each, rule) for each in documents):
        return REGRESSED
    return NOT_MEASURED if any(each["verdict_reason"] for each in documents) else PASSED


def _document(before: Run, after: ComparedRun) -> dict[str, Any]:
    compared = after.comparison
    changes = comparison_between(before, after.run)
    return {
        "before": before.pk,
        "after": after.run.pk,
        "format": after.run.suite.format,
        "verdict": compared.verdict,
        "verdict_reason": compared.verdict_reason,
        "scenarios": compared.common,
        "comparable": compared.comparable,
        "measures": [change_json(change) for change in (*compared.headline, *compared.others)],
        "regressions": list(changes.regressions),
        "new_passes": list(changes.new_passes),
        "added": list(changes.added),
        "removed": list(changes.removed),
        "not_comparable": {key: list(why) for key, why in changes.not_comparable.items()},
        "ends": list(compared.exit_sources),
        "pooled": list(after.pooled),
        "first_divergences": divergences_json(after.divergences),
    }


def _text(after: ComparedRun, document: dict[str, Any]) -> str:
    compared = after.comparison
    lines = [
        f"{compared.verdict.label}: {compared.comparable} of {compared.common} scenarios comparable."
        if compared.verdict
        else compared.no_verdict
    ]
    if compared.pass_rate:
        lines.append(verdict_sentences.explain_verdict(_deciding(compared)))
    if changed := name_incomparable({key: tuple(why) for key, why in document["not_comparable"].items()}):
        lines.append(changed)
    lines += [f"{word}: {', '.join(document[name])}" for name, word in FLIPS.items() if document[name]]
    if after.divergences.sentence:
        lines.append(after.divergences.sentence)
    if sentence := describe_exit_sources(compared.exit_sources):
        lines.append(sentence)
    if after.pooled:
        lines.append(f"With further trials of runs {', '.join(map(str, after.pooled))}.")
    measures = [*compared.headline, *compared.others]
    return "\n".join(lines) + ("\n\n" + plain_measure_table(measures) if measures else "")


def _deciding(compared: RunComparison) -> MeasureChange:
    """Return the headline measure that the verdict is about, else the first."""
    return next(
        (each for each in compared.headline if each.verdict is compared.verdict), compared.headline[0]
    )


def _write_summary(place: str, before: Run, later: Sequence[Run]) -> None:
    try:
        write_summary(place, [comparison_summary(before, after) for after in later])
    except NotWritable as error:
        raise Refused(str(error), id=error.id) from error
