"""The command line, `evalhub` or `manage.py`: Django's commands with plain endings and completion by the shell."""

from __future__ import annotations

import gc
import os
import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from select import POLLERR, poll
from typing import TextIO

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line, get_commands, load_command_class
from django.core.management.base import BaseCommand

YOUNG_OBJECTS = 50_000
WRONG_USE = 2
"""Exit code for configuration errors; distinct from a failed run."""


def main() -> None:
    """Run the command that the arguments name."""
    # Half a million objects of modules stay until the end: searching them every 700 takes a sixth of the start.
    gc.set_threshold(YOUNG_OBJECTS, 20, 100)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    # Without an output (>&-) Python has no stream at all.
    sys.stdout = sys.stdout or _devnull()
    sys.stderr = sys.stderr or _devnull()
    try:
        if "_ARGCOMPLETE" in os.environ:
            _complete()
        if sys.argv[1:] in (["--version"], ["version"]):
            sys.stdout.write(f"{settings.VERSION}\n")
        else:
            execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Our own commands handle it, Django's don't.
        # Whether the reader of a pipe has closed it, as `head` does.
        closed = poll()
        closed.register(sys.stdout, POLLERR)
        if not closed.poll(0):
            raise
        with _devnull() as devnull:
            os.dup2(devnull.fileno(), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        # The exit code of shells after Ctrl-C.
        sys.exit(130)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(WRONG_USE)
    finally:
        # The process ends, so nothing needs to be collected once more.
        gc.freeze()


def _devnull() -> TextIO:
    return Path(os.devnull).open("w")


def _complete() -> None:
    """Print the completions that the shell asks for, and exit."""
    # Only a shell that completes needs it.
    import argcomplete

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
            options = command.create_parser("evalhub", name, add_help=False)
            commands.add_parser(name, parents=[options], help=SUPPRESS, conflict_handler="resolve")
        else:
            commands.add_parser(name, add_help=False, help=SUPPRESS)
    return parser
