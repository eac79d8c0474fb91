"""Shell completion by argcomplete: command names, then the options of the typed command."""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser

import argcomplete
import django
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand


def complete() -> None:
    """Print the completions that the shell asks for, and exit."""
    django.setup()
    argcomplete.autocomplete(_parser(os.environ.get("COMP_LINE", "")))


def _parser(line: str) -> ArgumentParser:
    """Return a parser of every command's name; only the one in the line has its arguments, because loading takes time."""
    parser = ArgumentParser(add_help=False)
    commands = parser.add_subparsers()
    words = line.split()
    for name, app in get_commands().items():
        if name in words:
            command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
            own = command.create_parser("evalhub", name, add_help=False)
            commands.add_parser(name, parents=[own], help=SUPPRESS, conflict_handler="resolve")
        else:
            commands.add_parser(name, add_help=False, help=SUPPRESS)
    return parser
