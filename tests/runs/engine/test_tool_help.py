"""The tool's help is read once for each version, and failed calls are compared with it."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.models import FlagConfusion, Run, SubcommandMeasure, ToolHelp
from runs.results.run_filters import RunListFilters
from runs.results.usage import markdown_of, read_usage
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.runs.carrying import launch, shell_target
from tests.runs.lost_connections import result_with_lost_connections

pytestmark = pytest.mark.django_db(transaction=True)
SHIP = """#!/bin/sh
case "$1 $2" in
  "--help ") echo "Usage: ship [OPTIONS] <COMMAND>

Commands:
  deploy  Deploy the application
  status  Show the state

Options:
      --config <FILE>  Configuration
  -h, --help           Print help" ;;
  "deploy --help") echo "Usage: ship deploy [OPTIONS] --env <ENV>

Options:
  -e, --env <ENV>        Environment
      --format <FORMAT>  Output format
  -h, --help             Print help" ;;
  "--version ") echo "ship 1.2" ;;
  deploy*) case "$*" in *--fmt*|deploy) echo "error: unexpected argument" >&2; exit 2 ;; esac ;;
  *) echo "unknown command" >&2; exit 2 ;;
esac
"""
STEP = """#!/bin/sh
output=$("$@" 2>&1); code=$?
printf '{"type":"tool_call","id":"%s","name":"bash","command":"%s"}\\n' $$ "$*" >> "$EVENTS"
printf '{"type":"tool_result","id":"%s","output":"%s","exit_code":%s}\\n' $$ "printed" $code >> "$EVENTS"
"""
SCENARIO = """
name: deploying
description: The agent deploys.
template_folder: box
target:
  binary: ./ship
  version_command: ./ship --version
task:
  prompt: |
    ./step ./ship deploy --help
    ./step ./ship deploy --env prod --fmt json
    ./step ./ship deploy --env prod --fmt text
    ./step ./ship depoly
    ./step ./ship deploy
    ./step ./ship deploy --env prod
    ./step ./ship deploy --help
evaluation:
  gates: []
"""


@pytest.fixture
def project() -> Project:
    project = make_project()
    shell_target(project)
    return project


def requested(project: Project, trials: int = 1) -> Run:
    """A run of an agent that confuses options of its tool."""
    scripts = {"templates/box/ship": SHIP.encode(), "templates/box/step": STEP.encode()}
    files = {"deploying.yaml": SCENARIO.encode(), **scripts}
    (imported,) = import_files(
        Bundle("ship", files, executables=frozenset(scripts)), project=project, by=None
    )
    return launch(imported.version, targets=["shell"], trials=trials).runs.get()


@pytest.fixture
def run(project: Project) -> Run:
    made = requested(project, trials=2)
    run_here.run_here(made.launch)
    made.refresh_from_db()
    assert made.passed == 2, made.error
    return made


def test_failed_calls_are_compared_with_the_help_of_the_version(run):
    columns = ("subcommand", "kind", "typed", "meant", "calls", "trials")
    assert sorted(FlagConfusion.objects.filter(run=run).values_list(*columns)) == [
        ("deploy", "missing", "", "--env", 2, 2),
        ("deploy", "near_miss", "--fmt", "--format", 4, 2),
        ("depoly", "unknown_command", "depoly", "deploy", 2, 2),
    ]
    pages = ToolHelp.objects.values_list("binary", "tool_version", "subcommand")
    assert sorted(pages) == [("./ship", "ship 1.2", name) for name in ("", "deploy", "depoly")]


def test_a_subcommands_help_and_attempts_are_counted_over_runs(project, run):
    deploy = SubcommandMeasure.objects.get(run=run, scenario=None, subcommand="deploy")
    assert (deploy.calls, deploy.errors, deploy.helps, deploy.helps_before) == (8, 6, 4, 2)
    assert deploy.tries == {"4": 2}
    found = read_usage(project, RunListFilters())
    assert (found.runs, [row.name for row in found.subcommands]) == (1, ["depoly", "deploy"])
    row = found.subcommands[1]
    assert (row.error_rate, row.median_tries, row.counts.failing_run) == (0.75, 4.0, run.pk)
    assert markdown_of(found.confusions).splitlines() == [
        "- [ ] `deploy` has no option `--fmt`. Did they mean `--format`? 4 calls in 2 trials.",
        "- [ ] `deploy` was called without `--env`. 2 calls in 2 trials.",
        "- [ ] There is no command `depoly`. Did they mean `deploy`? 2 calls in 2 trials.",
    ]


def test_usage_counts_the_matching_runs_only(project, run):
    assert read_usage(project, RunListFilters(tool_version=("ship 2.0",))).runs == 0
    assert read_usage(project, RunListFilters(tool_version=("ship 1.2",))).runs == 1
    assert read_usage(make_project("other"), RunListFilters()).runs == 0


def test_the_help_is_read_and_stored_also_when_connections_are_lost(project):
    result, lost = result_with_lost_connections(requested(project))
    assert (result.error, result.outcome) == ("", "pass")
    assert len(result.detail["flags"]) == 3
    assert ToolHelp.objects.count() == 3
    assert any("runs_toolhelp" in query for query in lost)
