"""What every evalhub command has in common: `--json`, exit codes, and sentences instead of tracebacks."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import OperationalError, ProgrammingError

from evalhub.teams.access import default_project, local_owner
from evalhub.teams.models import Project
from scenarios.formats.problems import Problem, ScenarioFileError

PASSED, FAILED, WRONG_USE, REGRESSED = 0, 1, 2, 3
"""Exit codes of every command."""


@dataclass(frozen=True)
class Result:
    """What a command has to say: for people, for programs, and as an exit code."""

    text: str
    document: Any
    code: int = PASSED


class Refused(Exception):
    """Wrong use or a wrong file: a sentence, and the problems of files where there are any."""

    def __init__(
        self, sentence: str, *, id: str = "command/wrong-use", problems: tuple[Problem, ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.id = id
        self.problems = problems


class EvalhubCommand(BaseCommand):
    """Base of the commands: a subclass writes `arguments` and `work`."""

    # A check of every setting costs more than most commands; `manage.py check` and `up` do it.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        self.arguments(parser)

    def arguments(self, parser: ArgumentParser) -> None:
        """Add the command's own arguments."""
        raise NotImplementedError

    def work(self, options: dict[str, Any]) -> Result:
        """Do it. Raises `Refused` or `ScenarioFileError` for wrong use."""
        raise NotImplementedError

    def handle(self, **options: Any) -> None:
        try:
            ensure_database()
            result = self.work(options)
        except ScenarioFileError as error:
            self._refuse(
                options,
                Refused(
                    "The files cannot be taken as they are.", id="files/refused", problems=error.problems
                ),
            )
        except Refused as error:
            self._refuse(options, error)
        except (OperationalError, ProgrammingError) as error:
            self._refuse(options, _database_trouble(error))
        else:
            self.stdout.write(json.dumps(result.document) if options["json"] else result.text)
            if result.code:
                sys.exit(result.code)

    def _refuse(self, options: dict[str, Any], error: Refused) -> None:
        if options["json"]:
            document = {
                "detail": str(error),
                "id": error.id,
                "problems": [each.as_json() for each in error.problems],
            }
            self.stdout.write(json.dumps(document))
        else:
            for problem in error.problems:
                self.stderr.write(str(problem))
            self.stderr.write(str(error))
        sys.exit(WRONG_USE)


def _database_trouble(error: Exception) -> Refused:
    told = str(error).strip().splitlines()[0]
    return Refused(
        f"The database cannot be used: {told}. Check DATABASE_URL, and run 'manage.py migrate' after an upgrade.",
        id="database/unusable",
    )


def ensure_database() -> None:
    """Make or upgrade the embedded database where it is not of this release, so that every command just works."""
    if not settings.EMBEDDED or not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        return
    stamp, now = Path(settings.DATA_DIR) / "migrated", _migrations()
    if (
        not Path(settings.DATABASES["default"]["NAME"]).exists()
        or not stamp.exists()
        or stamp.read_text() != now
    ):
        call_command("migrate", verbosity=0, interactive=False)
        stamp.write_text(now)


def _migrations() -> str:
    """Return the names of all migrations; reading them from the database takes as long as a whole command."""
    folders = [Path(config.path) / "migrations" for config in apps.get_app_configs()]
    return "\n".join(sorted(str(path.name) for folder in folders for path in folder.glob("0*.py")))


def add_project_argument(parser: ArgumentParser) -> None:
    """Add `--project`."""
    parser.add_argument("--project", help="slug of the project (default: the default project)")


def add_strict_argument(parser: ArgumentParser) -> None:
    """Add `--strict`."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse eval cases without `expect`, or with unknown keys in it",
    )


def chosen_project(slug: str | None) -> Project:
    """Return the named project, else the default one. Raises `Refused`."""
    if slug is None:
        return default_project()
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        names = ", ".join(Project.objects.values_list("slug", flat=True)) or "none yet"
        raise Refused(f"There is no project '{slug}'. There are: {names}.", id="project/unknown")
    return project


def acting_user() -> Any:
    """Return who acts from the command line: the local owner when embedded, else nobody in particular."""
    return local_owner() if settings.EMBEDDED else None


def read_bytes(path: str, what: str) -> bytes:
    """Return a file's content. Raises `Refused` saying what was to be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Refused(
            f"{path}: {what} cannot be read: {error.strerror}. Check the path.", id="command/unreadable"
        ) from error
