"""`search`: find trials by their texts."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import fields
from typing import Any

from runs.results.search.trial_search import COLUMNS, MOST_CANDIDATES, FoundTrial
from runs.results.search.views import TrialSearch, find_trials
from scenarios.commands import EvalhubCommand, Refused, Result, add_project_argument, chosen_project

OUTCOMES = ("pass", "fail", "error")


class Command(EvalhubCommand):
    help = "Find trials by commands, first lines of outputs, judges' statements and answers, best first."
    examples = (
        '"unknown flag"',
        "deploy --outcome fail --place commands",
        "'exit code' --suite basics --json",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "q", metavar="TEXT", help='words that all occur; "a phrase", sta* for beginnings, -excluded'
        )
        add_project_argument(parser)
        parser.add_argument("--place", choices=COLUMNS, default="", help="search only there")
        parser.add_argument("--suite", default="", help="slug of a suite")
        parser.add_argument("--target", default="", help="name of a target")
        parser.add_argument("--outcome", choices=OUTCOMES, default="", help="only trials with this outcome")
        parser.add_argument("--tool-version", default="", help="only trials of this tool version")
        parser.add_argument("--guidance", default="", help="only trials with this guidance, by its id")
        parser.add_argument("--by", default="", help="only runs of this person")
        parser.add_argument("--since", default="", help="first day, as 2026-11-09, in UTC")
        parser.add_argument("--until", default="", help="last day")
        parser.add_argument("--limit", type=int, default=20, help="trials printed (default: %(default)s)")

    def work(self, options: dict[str, Any]) -> Result:
        if not 1 <= options["limit"] <= MOST_CANDIDATES:
            raise Refused(f"--limit is {options['limit']}. Give 1 to {MOST_CANDIDATES}.")
        wanted = TrialSearch(**{each.name: options[each.name] for each in fields(TrialSearch)})
        hits = find_trials(chosen_project(options["project"]), wanted)
        trials = hits[: options["limit"]]
        lines = [f"No trial contains {options['q']!r}."] if not trials else [*map(_line, trials)]
        if len(hits) > len(trials):
            lines.append(f"… {len(hits) - len(trials)} more; --limit prints them.")
        return Result("\n".join(lines), {"items": [_document(each) for each in trials], "total": len(hits)})


def _line(trial: FoundTrial) -> str:
    number = f" #{trial.index + 1}" if trial.index else ""
    place = f"trial {trial.trial}, run {trial.run}, {trial.suite_name}"
    return f"{trial.outcome:<5} {trial.scenario}{number} ({place})\n      {trial.place}: {trial.passage}"


_SHOWN = (
    *("trial", "run", "suite", "scenario", "index", "outcome", "target"),
    *("place", "passage", "score"),
)


def _document(trial: FoundTrial) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in _SHOWN}
