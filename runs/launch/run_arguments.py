"""The arguments of `run_scenarios`."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError

from runs.engine import run_here
from runs.exchange.exports.exports import RULES
from runs.exchange.imports.import_results import shard_of
from runs.launch.run_request import asked_fields
from runs.models.run_options import AMOUNT, COMPARISON, JUDGE, LABELS, OUTPUT, SCENARIOS, TARGETS
from scenarios.commands import Arguments, add_project_argument, add_strict_argument, add_summary_argument


def add_run_arguments(parser: ArgumentParser) -> None:
    """Add every argument of the command, in groups."""
    parser.add_argument(
        "suites",
        nargs="+",
        metavar="PATH-or-suite",
        help="file, folder or bundle, or the slug of a stored suite",
    )
    add_project_argument(parser)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--now", action="store_true", help="run in this process, without workers")
    mode.add_argument("--wait", action="store_true", help="run through workers and wait")
    mode.add_argument("--dry-run", action="store_true", help="print what would run, store nothing")
    _add_scenarios(parser.add_argument_group(SCENARIOS))
    _add_targets(parser.add_argument_group(TARGETS))
    _add_amount(parser.add_argument_group(AMOUNT))
    _add_asked(parser.add_argument_group(JUDGE), JUDGE)
    _add_comparison(parser.add_argument_group(COMPARISON))
    _add_sources(parser.add_argument_group("values and tools"))
    _add_asked(parser.add_argument_group(LABELS), LABELS)
    _add_output(parser.add_argument_group(OUTPUT))


def _add_asked(group: Arguments, title: str) -> None:
    """Add the options of `RunRequest` that belong under this title."""
    for field in asked_fields():
        if field.asked.group != title:
            continue
        if field.kind is bool:
            action = "store_false" if field.default else "store_true"
            group.add_argument(field.flag, dest=field.name, action=action, help=field.asked.help)
        elif field.kind is list:
            group.add_argument(
                field.flag,
                dest=field.name,
                action="append",
                default=[],
                metavar=field.asked.metavar or field.flag.strip("-").replace("-", "_").upper(),
                help=field.asked.help if "repeat" in field.asked.help else f"{field.asked.help}; repeatable",
            )
        else:
            group.add_argument(
                field.flag,
                type=field.kind,
                default=field.default,
                choices=field.choices or None,
                metavar=field.asked.metavar,
                help=field.asked.help,
            )


def _add_scenarios(group: Arguments) -> None:
    _add_asked(group, SCENARIOS)
    group.add_argument(
        "--shard",
        type=_shard,
        metavar="N/M",
        help="run one of M parts of the scenarios, such as 1/3; import_results --merge makes one run of all parts",
    )
    group.add_argument(
        "--guidance",
        action="append",
        default=[],
        metavar="FILE-or-version",
        help="guidance in place of the suite's; repeat for a run with each",
    )
    add_strict_argument(group)


def _add_targets(group: Arguments) -> None:
    _add_asked(group, TARGETS)
    group.add_argument(
        "--targets", dest="targets_file", metavar="FILE", help="targets file to import into the project"
    )


def _add_amount(group: Arguments) -> None:
    _add_asked(group, AMOUNT)
    group.add_argument(
        "--wait-limit",
        type=_seconds,
        default=run_here.WAIT_LIMIT_SECONDS,
        metavar="S",
        help="with --wait: seconds to wait while no worker is running (default: %(default)g; 0: no limit)",
    )


def _add_comparison(group: Arguments) -> None:
    _add_asked(group, COMPARISON)
    group.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit with 3 if anything regressed, with 4 if a run measured nothing: it could not start, or a third or more"
        " of its trials hit errors",
    )
    group.add_argument(
        "--require-baseline", action="store_true", help="exit with 4 if a run has no baseline to compare with"
    )
    group.add_argument(
        "--regression-rule",
        choices=RULES,
        help="verdict: a headline measure regressed; pass-fail: a scenario passed and no longer does"
        " (default: pass-fail for eval files of tool-forge, else verdict)",
    )
    group.add_argument(
        "--fail-on-release-rule",
        action="store_true",
        help="exit with 1 unless every run meets its suite's release rule, whatever single trials do",
    )


def _add_output(group: Arguments) -> None:
    group.add_argument("--quiet", action="store_true", help="print no progress")
    _add_asked(group, OUTPUT)
    group.add_argument("--json-file", metavar="FILE", help="write the run documents to this file")
    group.add_argument(
        "--archive-file",
        metavar="FILE",
        help="write the runs as an archive that import_results reads back exactly",
    )
    group.add_argument("--junit-file", metavar="FILE", help="write JUnit XML to this file")
    add_summary_argument(group)
    group.add_argument(
        "--include-trace", action="store_true", help="add each trial's trace to the run documents (JSON)"
    )
    group.add_argument(
        "--dump-traces",
        nargs="?",
        const="traces",
        metavar="FOLDER",
        help="write each trial's trace to this folder (default: traces; with =FOLDER before a suite)",
    )
    group.add_argument(
        "--output-dir", metavar="FOLDER", help="write an EvalSuiteResult per run to this folder"
    )


def _add_sources(group: Arguments) -> None:
    group.add_argument(
        "--config", metavar="FILE", help="runner configuration of tool-forge; other options override it"
    )
    group.add_argument("--seed-manifest", metavar="FILE", help="values for {{seed:…}} (default: the suite's)")
    group.add_argument(
        "--snapshot", metavar="FILE|URL|command", help="values for {{snapshot:…}}, read just before the run"
    )
    group.add_argument(
        "--tool-descriptions",
        metavar="FILE",
        help="descriptions in place of those of the MCP server under test",
    )
    group.add_argument(
        "--tool-registry", metavar="FILE|URL|command", help="tools for staleness checks and stubs"
    )


def _shard(text: str) -> tuple[int, int]:
    try:
        return shard_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ArgumentTypeError(f"{text} is not a number of seconds. Give 0 or more.")
    return seconds
