"""What failed calls confused, by the help of real tools' layouts."""

from __future__ import annotations

import pytest

from evaluators.model import Command
from evaluators.tool_use.flag_confusion import (
    TOOL,
    Confusion,
    HelpPage,
    confused_subcommands,
    find_confusions,
    parse_help,
)
from tests.linear_time import assert_linear_time, quarter

ARGPARSE = """usage: stock count [-h] [--shelf SHELF] [--json] --area AREA name

positional arguments:
  name           what to count

options:
  -h, --help     show this help message and exit
  --shelf SHELF  the shelf
  --json         print JSON
  --area AREA
"""
CLAP = """Deploys the application

Usage: ship deploy [OPTIONS] <TARGET> --env <ENV>

Arguments:
  <TARGET>  What to deploy

Options:
  -e, --env <ENV>        Environment to deploy to
      --format <FORMAT>  Output format [default: text]
      --dry-run          Print what would be done
  -h, --help             Print help
"""
COBRA = """Manage tasks.

Usage:
  task [command]

Available Commands:
  add         Add a task
  list        List tasks
  help        Help about any command

Flags:
  -c, --config string   config file
  -h, --help            help for task
"""
CLICK = """Usage: tool [OPTIONS] COMMAND [ARGS]...

Options:
  --verbose  Say more.
  --help     Show this message and exit.

Commands:
  export  Write everything.
  init    Begin.
"""


GIT = """usage: git [-v | --version] <command> [<args>]

These are common Git commands used in various situations:

start a working area (see also: git help tutorial)
   clone     Clone a repository into a new directory
   init      Create an empty Git repository

work on the current change
   add       Add file contents to the index
"""


@pytest.mark.parametrize(
    ("text", "page"),
    [
        (ARGPARSE, HelpPage((("-h", "--help"), ("--shelf",), ("--json",), ("--area",)), ("--shelf", "--area"), (), ("--area",))),
        (CLAP, HelpPage((("-e", "--env"), ("--format",), ("--dry-run",), ("-h", "--help")), ("-e", "--env", "--format"), (), ("TARGET", "--env"))),
        (COBRA, HelpPage((("-c", "--config"), ("-h", "--help")), (), ("add", "list"))),
        (CLICK, HelpPage((("--verbose",), ("--help",)), (), ("export", "init"))),
        (GIT, HelpPage((("-v",), ("--version",)), (), ("clone", "init", "add"))),
        ("usage: t {create,list} ...", HelpPage((), (), ("create", "list"))),
        ("\n \r  Usage: t <FILE>\n", HelpPage((), (), (), ("FILE",))),
        ("  --map <<A>=<B>>\n  --in {a{b}}\n  x-y=A", HelpPage((("--map",), ("--in",)), ("--map", "--in"))),
        ("  -v\nCommands:\n  a  A\n\n  More commands:\n  b  B\nSee:\n  c  C", HelpPage((("-v",),), (), ("a", "b"))),
        ("There is no help.\n", HelpPage()),
        ("", HelpPage()),
    ],
    ids=[
        "argparse",
        "clap",
        "cobra",
        "click",
        "git",
        "choices",
        "blanks",
        "brackets",
        "sections",
        "prose",
        "nothing",
    ],
)  # fmt: skip
def test_a_help_text_names_options_and_subcommands(text, page):
    assert parse_help(text) == page


@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    [
        "\n" * 100_000,
        "\n" + " " * 100_000,
        "  " + "-" * 100_000,
        "  " + "-a" * 50_000,
        "  " + "-a <" * 25_000,
        "  " + "-a {" * 25_000,
        "{a" + ",a" * 50_000,
        "usage: " + "[" * 100_000,
        "usage: -a\ncommand:\n" + "  command:\n" * 9_000,
        "usage: -a\n" + "command:\n" * 10_000,
    ],
    ids=[
        "newlines",
        "spaces",
        "dashes",
        "options",
        "values",
        "braces",
        "commas",
        "brackets",
        "nested",
        "titles",
    ],
)
def test_hostile_help_takes_linear_time(text: str) -> None:
    assert_linear_time(parse_help, quarter(text), text)


def failed(line, subcommand="deploy", **changes):
    return Command(line, subcommand, 2, failed=True, **changes, n=0)


PAGES = {"deploy": parse_help(CLAP), TOOL: HelpPage((("--config",), ("--verbose",)))}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ship deploy app --env prod --fmt json", [("near_miss", "--fmt", "--format")]),
        ("ship deploy app --env prod --output-format json", [("near_miss", "--output-format", "--format")]),
        ("ship deploy app --env=prod --recursive", [("invented", "--recursive", "")]),
        ("ship deploy app -e prod -z", [("invented", "-z", "")]),
        ("ship deploy app --env prod --config x", [("wrong_place", "--config", "--config")]),
        ("ship --dry-run deploy app --env prod", [("wrong_place", "--dry-run", "--dry-run")]),
        ("ship --verbose deploy app --env prod", []),
        ("ship deploy --env prod", [("missing", "", "TARGET")]),
        ("ship deploy app", [("missing", "", "--env")]),
        ("ship deploy app --env prod -- --anything", []),
        ("ship deploy app --env 'open", []),
        ("ship other app --fmt", []),
    ],
)
def test_a_failed_call_is_compared_with_the_help(line, found):
    seen = [(each.kind, each.typed, each.meant) for each in find_confusions([failed(line)], PAGES)]
    assert sorted(seen) == sorted(found)


def test_equal_confusions_are_counted_and_only_of_failed_calls():
    line = "ship deploy app --env prod --fmt json"
    good = Command(line, "deploy", 0, n=1)
    helping = failed("ship deploy --help", help=True)
    found = find_confusions([failed(line), failed(line), good, helping], PAGES)
    assert found == [Confusion("deploy", "near_miss", "--fmt", "--format", 2)]
    assert confused_subcommands([failed(line), good, failed("ship x", "x"), helping]) == ["deploy", "x"]


@pytest.mark.parametrize(("typed", "meant"), [("remove", ""), ("inits", "init"), ("ad", "add")])
def test_a_subcommand_that_does_not_exist_is_named(typed, meant):
    pages = {TOOL: parse_help(GIT), typed: HelpPage()}
    found = find_confusions([failed(f"git {typed} x", typed)], pages)
    assert found == [Confusion(typed, "unknown_command", typed, meant)]


def test_without_a_help_page_no_confusion_is_reported():
    assert find_confusions([failed("ship deploy --fmt")], {}) == []
    assert find_confusions([failed("ship deploy --fmt")], {"deploy": HelpPage()}) == []
