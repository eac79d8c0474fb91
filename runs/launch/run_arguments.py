"""The arguments of `run_scenarios`."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError

from evalhub.teams.models import NAMES, Priority
from runs.engine import wait
from runs.exchange.exports.regression_rule import RULES
from runs.exchange.imports.merged_shards import shard_of
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
    _add_scenarios(parser.add_argument_group("what to run"))
    _add_targets(parser.add_argument_group("on what"))
    _add_amount(parser.add_argument_group("how many, how long"))
    _add_judge(parser.add_argument_group("judge"))
    _add_comparison(parser.add_argument_group("compare with"))
    _add_sources(parser.add_argument_group("values and tools"))
    _add_labels(parser.add_argument_group("labels stored with the run"))
    _add_output(parser.add_argument_group("output"))


def _add_scenarios(group: Arguments) -> None:
    group.add_argument(
        "--tags", action="append", default=[], help="comma-separated, any may match; repeat to require all"
    )
    group.add_argument("--tier", type=int, help="scenarios up to this tier")
    group.add_argument(
        "--only", action="append", default=[], metavar="KEY", help="key of a scenario; repeatable"
    )
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
    group.add_argument("--target", action="append", default=[], help="name of a target; repeatable")
    group.add_argument("--targets", metavar="FILE", help="targets file to import into the project")
    group.add_argument("--model", action="append", default=[], help="model for the target; repeatable")
    group.add_argument(
        "--profile",
        default="",
        help="targets and models of a profile in the suite's llm-tool-test-config.toml",
    )


def _add_amount(group: Arguments) -> None:
    group.add_argument("--trials", type=int, default=1, help="trials per scenario (default: 1)")
    group.add_argument(
        "--until-decided",
        action="store_true",
        help="add trials in up to four looks, first to undecided scenarios, until a verdict against the baseline, the"
        " limit, or little hope of one; two --guidance take turns and are compared with each other",
    )
    group.add_argument(
        "--max-trials",
        type=int,
        metavar="N",
        help="with --until-decided: most trials per scenario of each run (default: 12, at least 4 times --trials,"
        " which are those of the first look if above 1, else a quarter)",
    )
    group.add_argument(
        "--concurrency", type=int, help="trials at once (default: the target's workers, else 1)"
    )
    group.add_argument(
        "--priority",
        choices=NAMES,
        default=Priority.NORMAL.label,
        help="which launches of the project get its lanes first (default: %(default)s)",
    )
    group.add_argument(
        "--use-cache",
        action="store_true",
        help="reuse earlier passes with the same inputs; single trials only",
    )
    group.add_argument("--no-cache", action="store_false", dest="use_cache", help="run everything (default)")
    group.add_argument("--timeout-seconds", type=float, help="time limit of scenarios without one")
    group.add_argument(
        "--max-usd", type=float, metavar="USD", help="start no further trial once the runs cost this much"
    )
    group.add_argument(
        "--wait-limit",
        type=_seconds,
        default=wait.WAIT_LIMIT_SECONDS,
        metavar="S",
        help="with --wait: seconds to wait while no worker is running (default: %(default)g; 0: no limit)",
    )


def _add_judge(group: Arguments) -> None:
    group.add_argument("--no-judge", action="store_true", help="skip the judge")
    group.add_argument(
        "--judge-model",
        default="",
        help="target or model to judge with; default: the recommended model of a provider whose key is set",
    )
    group.add_argument(
        "--threshold",
        type=float,
        help="lowest mean of evaluators that passes, 0 to 1 (default: the suite's, else 1)",
    )


def _add_comparison(group: Arguments) -> None:
    group.add_argument(
        "--baseline",
        default="",
        metavar="RUN|UUID|FILE|last-pass",
        help="run or file of results to compare with (default: the pinned baseline, else the newest finished run)",
    )
    group.add_argument(
        "--experiment", action="store_true", help="compare it, but never as a baseline or alert"
    )
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


def _add_labels(group: Arguments) -> None:
    group.add_argument(
        "--tool-version", default="", help="version of the tool, if no command of the suite reports it"
    )
    group.add_argument("--branch", default="", help="branch of the tool's repository")
    group.add_argument("--commit", default="", help="commit of the tool's repository")
    group.add_argument("--run-tag", action="append", default=[], help="tag of the run; repeatable")


def _add_output(group: Arguments) -> None:
    group.add_argument("--quiet", action="store_true", help="print no progress")
    group.add_argument("--verbose", action="store_true", help="print a line for each trial on a terminal too")
    group.add_argument("--json-file", metavar="FILE", help="write the run documents to this file")
    group.add_argument(
        "--archive-file",
        metavar="FILE",
        help="write the runs as an archive that import_results reads back exactly",
    )
    group.add_argument("--junit-file", metavar="FILE", help="write JUnit XML to this file")
    group.add_argument(
        "--ctrf-file", metavar="FILE", help="write a Common Test Report (CTRF JSON) to this file"
    )
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
