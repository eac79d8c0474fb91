"""Compare two versions of a suite's guidance."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.teams.models import Project
from runs.compare.guidance.guidance_comparison import compare_pooled, comparison_json, settings_of
from runs.exchange.exports.measure_table import plain_measure_table
from scenarios.commands import EvalhubCommand, Refused, Result, add_project_argument, chosen_project
from scenarios.models import Guidance


class Command(EvalhubCommand):
    help = "Compare guidance B with guidance A, measure by measure, over the runs that had each."
    examples = ("1 2 --suite git-basics", "poor good --suite git-basics --json")

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("a", metavar="A", help="number, name or start of the hash of a version")
        parser.add_argument("b", metavar="B", help="the version to compare with it")
        parser.add_argument("--suite", default="", help="suite (default: the only one that has both)")
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        before, after = _pair(chosen_project(options["project"]), options)
        setting = next(iter(settings_of(before, after)), None)
        chosen = setting.load() if setting else None
        compared = compare_pooled(chosen) if chosen else None
        document = comparison_json(before, after, chosen, compared)
        if chosen is None or compared is None:
            return Result(
                f"No target, model and tool version ran with both {before} and {after}. "
                f"Run them together: run_scenarios {before.suite.slug} --guidance {before.number} "
                f"--guidance {after.number}.",
                document,
            )
        measures = [*compared.headline, *compared.others]
        verdict = compared.verdict.label if compared.verdict else "No verdict"
        text = f"{verdict}: {after} compared with {before} on {chosen.setting.label}.\n"
        return Result(f"{text}{chosen.sentence}\n\n{plain_measure_table(measures)}", document)


def _pair(project: Project, options: dict[str, Any]) -> tuple[Guidance, Guidance]:
    """Return the two versions. Raises `Refused` for unknown or ambiguous ones."""
    versions = Guidance.objects.filter(suite__project=project).select_related("suite__project")
    if options["suite"]:
        versions = versions.filter(suite__slug=options["suite"])
    by_suite: dict[str, list[Guidance]] = {}
    for version in versions.order_by("number"):
        by_suite.setdefault(version.suite.slug, []).append(version)
    named = {
        slug: [
            next((version for version in guidance if _is_called(version, options[side])), None)
            for side in ("a", "b")
        ]
        for slug, guidance in by_suite.items()
    }
    pairs = {slug: (one, other) for slug, (one, other) in named.items() if one and other and one != other}
    if len(pairs) > 1:
        raise Refused(f"Several suites have both: {', '.join(pairs)}. Name one with --suite.")
    if not pairs:
        known = "; ".join(
            f"{slug}: {', '.join(str(version.number) for version in guidance)}"
            for slug, guidance in by_suite.items()
        )
        raise Refused(
            f"No suite has two versions of guidance '{options['a']}' and '{options['b']}'. There are: {known or 'none'}."
        )
    return next(iter(pairs.values()))


def _is_called(guidance: Guidance, name: str) -> bool:
    return name in (str(guidance.number), guidance.name) or (
        len(name) >= 6 and guidance.sha256.startswith(name)
    )
