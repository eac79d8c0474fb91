"""What every command has in common: `--json`, exit codes, and sentences instead of tracebacks."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

import msgspec
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser, DjangoHelpFormatter, OutputWrapper
from django.db import OperationalError, ProgrammingError
from django.db.models import Model

from evalhub.lib.disk_errors import is_disk_full


class NotPrinted(Exception):
    """The command's output can't be printed; the message says why."""


def print_text(stream: OutputWrapper, text: str) -> None:
    """Print and flush a text; a reader that closes the pipe early, such as `head`, isn't an error. Raises `NotPrinted`."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _let_go(stream)
    except OSError as error:
        _let_go(stream)
        raise NotPrinted(f"Can't write the output: {error.strerror}. Redirect it elsewhere.") from error


def _let_go(stream: OutputWrapper) -> None:
    """Discard the rest: Python would flush it again at exit and print an error."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)


PASSED, FAILED, WRONG_USE, REGRESSED, NOT_MEASURED = 0, 1, 2, 3, 4
"""Exit codes of every command."""
HIGHEST_PORT = 65_535
MOST_DAYS = 36_500
"""A hundred years, which keeps dates within the years 1 to 9999."""


class FileProblem(Protocol):
    """A problem of a file: a line for people, and a document for programs."""

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Result:
    """A command's result: text for people, JSON for programs, and an exit code."""

    text: str
    document: Any
    code: int = PASSED


class Refused(Exception):
    """Wrong use or a wrong file: a sentence, and the problems of files where there are any."""

    def __init__(
        self, sentence: str, *, id: str = "command/wrong-use", problems: Sequence[FileProblem] = ()
    ) -> None:
        super().__init__(sentence)
        self.id = id
        self.problems = problems


class Arguments(Protocol):
    """What arguments are added to: a parser, or a group of its help."""

    def add_argument(self, *names: str, **options: Any) -> Any: ...


class _HelpFormatter(RawDescriptionHelpFormatter, DjangoHelpFormatter):
    """Keeps the lines of the examples."""


class HelpfulCommand(BaseCommand):
    """Base of the commands whose help ends with examples and Django's own options."""

    examples: tuple[str, ...] = ()
    """Arguments of calls, each as one text."""

    # A check of every setting costs more than most commands; `manage.py check` and `up` do it.
    requires_system_checks = []

    def get_version(self) -> str:
        """Return evalhub's version, not Django's."""
        return str(settings.VERSION)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        self._django_options: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        calls = "".join(f"\n  %(prog)s {each}".rstrip() for each in self.examples)
        kwargs = {
            "formatter_class": _HelpFormatter,
            "epilog": f"examples:{calls}" if calls else None,
            **kwargs,
        }
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        # Characters of a line of a command's description.
        parser.description = textwrap.fill(self.help, 79)
        group = parser.add_argument_group("Django's options")
        for names, options in self._django_options:
            group.add_argument(*names, **options)
        return parser

    def add_base_argument(self, parser: ArgumentParser, *names: str, **options: Any) -> None:
        """Keep Django's option for the end of the help."""
        self._django_options.append((names, options))


class PlainCommand(HelpfulCommand):
    """Base of the commands that print one result: a subclass writes `arguments` and `work`."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        self.arguments(parser)

    def arguments(self, parser: ArgumentParser) -> None:
        """Add the command's own arguments."""
        raise NotImplementedError

    def work(self, options: dict[str, Any]) -> Result:
        """Run the command and return its result. Raises `Refused` for wrong use."""
        raise NotImplementedError

    def carry_out(self, options: dict[str, Any]) -> Result:
        """Run `work`; base classes override this to refuse more."""
        return self.work(options)

    def handle(self, **options: Any) -> None:
        try:
            ensure_database()
            result = self.carry_out(options)
        except Refused as error:
            self._refuse(options, error)
        except (OperationalError, ProgrammingError, OSError) as error:
            if is_disk_full(error):
                self._refuse(options, Refused(disk_full(), id="disk/full"))
            if isinstance(error, OSError):
                raise
            message = str(error).strip().splitlines()[0]
            sentence = f"The database cannot be used: {message}. Check DATABASE_URL, and run 'manage.py migrate' after an upgrade."
            self._refuse(options, Refused(sentence, id="database/unusable"))
        else:
            self._print(
                json.dumps(result.document, default=msgspec.to_builtins) if options["json"] else result.text
            )
            if result.code:
                sys.exit(result.code)

    def _print(self, text: str) -> None:
        try:
            print_text(self.stdout, text)
        except NotPrinted as error:
            self.stderr.write(str(error))
            sys.exit(WRONG_USE)

    def _refuse(self, options: dict[str, Any], error: Refused) -> NoReturn:
        if options["json"]:
            document = {
                "detail": str(error),
                "id": error.id,
                "problems": [each.as_json() for each in error.problems],
            }
            self._print(json.dumps(document))
        else:
            for problem in error.problems:
                self.stderr.write(str(problem))
            self.stderr.write(str(error))
        sys.exit(WRONG_USE)


def disk_full() -> str:
    """Return the sentence of a command that a full or failing disk stopped."""
    embedded = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    further = "" if embedded else ", or the database server's,"
    return (
        f"The disk of {settings.DATA_DIR}{further} is full or failing. Free some space there, then try again."
    )


def ensure_database() -> None:
    """Make or upgrade the embedded database where it is not of this release, so that every command just works."""
    if not settings.EMBEDDED or not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        return
    # Reading what was migrated from the database takes as long as a whole command.
    folders = [Path(config.path) / "migrations" for config in apps.get_app_configs()]
    now = "\n".join(sorted(str(path.name) for folder in folders for path in folder.glob("0*.py")))
    stamp = Path(settings.DATA_DIR) / "migrated"
    if (
        not Path(settings.DATABASES["default"]["NAME"]).exists()
        or not stamp.exists()
        or stamp.read_text() != now
    ):
        call_command("migrate", verbosity=0, interactive=False)
        stamp.write_text(now)


def port_number(text: str) -> int:
    """Return a port that was typed in. Raises ArgumentTypeError, which ends a command with a sentence."""
    if not text.isdecimal() or not 1 <= int(text) <= HIGHEST_PORT:
        raise ArgumentTypeError(f"{text} is not a port: give a number from 1 to {HIGHEST_PORT}.")
    return int(text)


def number_of_days(text: str) -> int:
    """Return a number of days that was typed in. Raises ArgumentTypeError, which ends a command with a sentence."""
    if not text.isdecimal() or not 1 <= int(text) <= MOST_DAYS:
        raise ArgumentTypeError(f"{text} is not a number of days: give one from 1 to {MOST_DAYS}.")
    return int(text)


def check_fit(model: type[Model], field: str, typed: str) -> str:
    """Return a text that a model's field can hold; SQLite would keep any. Raises `Refused`."""
    try:
        cleaned: str = model._meta.get_field(field).clean(typed, None)  # type: ignore[union-attr]  # every name is a column's
    except ValidationError as error:
        raise Refused(f"The {field} '{typed[:40]}' is not valid. {' '.join(error.messages)}") from error
    return cleaned
